/** An API server that serves our kinds, to everybody. */

import { createKubeApi } from '#kube/http/client.ts';
import { connectKubeconfig } from '#kube/http/kubeconfig.ts';
import type { KubeApi } from '#kube/model/types.ts';
import { customResourceDefinitions as crds } from '#shared/domain/core-kinds.ts';
import { silentLog } from '#shared/ports/log.ts';
import { systemClock } from '#shared/ports/system-clock.ts';
import { allKinds } from '#shared/schema/all-kinds.ts';
import { customResourceDefinitions } from '#shared/schema/crd.ts';
import { eventually } from './eventually.ts';
import { startApiServer, type TestApiServer } from './kube-apiserver.ts';

/** A server of the caller's own, which it may kill, restart and reconfigure. Everybody else leases one: `leaseApiServer`. */
export async function startOwnKindsServer(): Promise<TestApiServer> {
  const server = await startApiServer();
  try {
    const connection = await connectKubeconfig(server.kubeconfig);
    await serveOwnKinds(server, createKubeApi(connection, { clock: systemClock, log: silentLog }));
    connection.close();
  } catch (error) {
    await server.stop();
    throw error;
  }
  return server;
}

/**
 * Makes the definitions and then starts kube-controller-manager, for which `server` must not have been told to care: its garbage collector
 * looks for new kinds twice a minute only, and until then ends nothing that one of ours owns.
 */
export async function serveOwnKinds(server: TestApiServer, api: KubeApi): Promise<void> {
  await Promise.all(customResourceDefinitions().map((definition) => api.create(crds, definition as never)));
  await eventually('the kinds', async () => {
    await Promise.all(allKinds.map((kind) => api.list(kind)));
    return true;
  });
  await server.restartControllerManager([]);
}
