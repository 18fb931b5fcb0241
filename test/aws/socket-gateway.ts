/** The management endpoint of a WebSocket API: takes what is posted to connections; those that were closed answer 410 as the real one does. */
import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';

export interface SocketGateway {
  readonly endpoint: string;
  /** Everything posted so far, in order. */
  readonly posted: { readonly connectionId: string; readonly frame: unknown }[];
  /** Closed by the broker. */
  readonly deleted: string[];
  /** The agent left without a word. */
  vanish(connectionId: string): void;
  stop(): void;
}

export async function startSocketGateway(): Promise<SocketGateway> {
  const posted: SocketGateway['posted'] = [];
  const deleted: string[] = [];
  const gone = new Set<string>();
  const server = createServer((request, response) => {
    const chunks: Buffer[] = [];
    request.on('data', (chunk: Buffer) => chunks.push(chunk));
    request.on('end', () => {
      const connectionId = decodeURIComponent(/\/@connections\/([^/?]+)/.exec(request.url ?? '')?.[1] ?? '');
      if (gone.has(connectionId)) {
        response.writeHead(410, { 'content-type': 'application/json', 'x-amzn-errortype': 'GoneException' }).end();
        return;
      }
      if (request.method === 'DELETE') {
        deleted.push(connectionId);
        gone.add(connectionId);
        response.writeHead(204).end();
        return;
      }
      posted.push({ connectionId, frame: JSON.parse(Buffer.concat(chunks).toString('utf8')) });
      response.writeHead(200).end();
    });
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  return {
    endpoint: `http://127.0.0.1:${port}/broker`,
    posted,
    deleted,
    vanish: (connectionId) => void gone.add(connectionId),
    stop() {
      server.closeAllConnections();
      server.close();
    },
  };
}
