/** An API server with our kinds and kube-controller-manager for one test file, from the pool of the run where there is one. */
import type { ApiServer } from '#test/harness/kube-apiserver.ts';
import { startOwnKindsServer } from '#test/harness/own-kinds.ts';
import { type Leased, leaseFrom } from './socket.ts';

/** Path of the pool's socket. */
export const poolVariable = 'ISTHMUS_API_SERVER_POOL';

let leases: Leased[] = [];

/**
 * Holds what a new server holds, and nothing of an earlier file. The pool takes it back at the end of the file (`test/harness/nothing-left.ts`) or of this
 * process, and not at `stop()`: a controller that a test forgot to stop cannot write to the next file's server. A test that kills or reconfigures
 * components starts a server of its own: `startOwnKindsServer`.
 */
export async function leaseApiServer(): Promise<ApiServer> {
  const socket = process.env[poolVariable];
  if (socket === undefined) return startOwnKindsServer();
  const lease = await leaseFrom(socket);
  leases.push(lease);
  return { ...lease.server, stop: async () => undefined };
}

/** Gives all servers of this process back. */
export function endLeases(): void {
  for (const lease of leases) lease.release();
  leases = [];
}
