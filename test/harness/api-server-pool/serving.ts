/** The servers of the pool: our kinds are served, kube-controller-manager runs, and what is there then is what a clean server holds. */
import type { TestApiServer } from '#test/harness/kube-apiserver.ts';
import { startOwnKindsServer } from '#test/harness/own-kinds.ts';
import { AdminApi, restoreState, settledState } from './clean.ts';
import { Pool } from './pool.ts';
import type { Described } from './socket.ts';
import type { State } from './state.ts';

export interface PooledApiServer {
  readonly server: TestApiServer;
  readonly api: AdminApi;
  readonly initial: State;
}

export const createApiServerPool = (
  log: (line: string) => void,
  { cleanWithinMs = 40_000 } = {},
): Pool<PooledApiServer> =>
  new Pool<PooledApiServer>({
    async start() {
      const server = await startOwnKindsServer();
      const api = new AdminApi({ url: server.url, ca: server.ca, cert: server.adminCert, key: server.adminKey });
      try {
        return { server, api, initial: await settledState(api) };
      } catch (error) {
        api.close();
        await server.stop();
        throw error;
      }
    },
    /**
     * kube-controller-manager remembers by name: a node that was silent in one file would be given up at once when the next file makes one of
     * the same name.
     */
    async renew({ server }) {
      server.resume();
      await server.restartControllerManager([]);
    },
    async clean({ api, initial, server }) {
      await restoreState(api, initial, { withinMs: cleanWithinMs });
      await server.pause();
    },
    async end({ api, server }) {
      api.close();
      await server.stop();
    },
    log,
  });

export function describeServer({ server }: PooledApiServer): Described {
  const { url, ca, adminCert, adminKey, kubeconfig, kubeconfigPath, dir, kubebox } = server;
  return { url, ca, adminCert, adminKey, kubeconfig, kubeconfigPath, dir, kubebox };
}
