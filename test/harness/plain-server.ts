/** An API server of a test's own making, for what a real one does only in trouble. */
import type * as http from 'node:http';
import type net from 'node:net';
import type { ClusterConnection } from '#kube/http/connection.ts';
import { connectKubeconfig } from '#kube/http/kubeconfig.ts';

export interface PlainServer {
  readonly connection: ClusterConnection;
  close(): void;
}

/** Listens on loopback, without TLS. */
export async function connectTo(server: http.Server): Promise<PlainServer> {
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as net.AddressInfo;
  const connection = await connectKubeconfig(
    JSON.stringify({
      'current-context': 'x',
      contexts: [{ name: 'x', context: { cluster: 'x' } }],
      clusters: [{ name: 'x', cluster: { server: `http://127.0.0.1:${port}` } }],
    }),
  );
  return {
    connection,
    close() {
      connection.close();
      server.closeAllConnections();
      server.close();
    },
  };
}
