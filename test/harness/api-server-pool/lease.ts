/** An API server with our kinds and kube-controller-manager for one test file, from the pool of the run where there is one. */
import type { ApiServer } from '#test/harness/kube-apiserver.ts';
import { startOwnKindsServer } from '#test/harness/own-kinds.ts';
import { leaseFrom } from './socket.ts';

/** Path of the pool's socket. */
export const poolVariable = 'ISTHMUS_API_SERVER_POOL';

/**
 * Holds what a new server holds, and nothing of an earlier file. The pool takes it back when this process ends and not at `stop()`: a
 * controller that a test forgot to stop cannot write to the next file's server. A test that kills or reconfigures components starts a server of
 * its own: `startOwnKindsServer`.
 */
export async function leaseApiServer(): Promise<ApiServer> {
  const socket = process.env[poolVariable];
  if (socket === undefined) return startOwnKindsServer();
  const { server } = await leaseFrom(socket);
  return { ...server, stop: async () => undefined };
}
