/** How long a credential that was taken back is still honoured. */
import { codeOf } from '#shared/errors/app-error.ts';
import { eventually } from './eventually.ts';

/**
 * Calls `revoke`, then asks with `ask` until an API server refuses the credential (`kube_unauthorized`); rejects unless that happens within 60 s. Prints the seconds from the
 * call of `revoke` to the end of the last request that was answered.
 */
export async function revokeUntilRefused(ask: () => Promise<unknown>, revoke: () => Promise<unknown>): Promise<void> {
  await ask();
  const at = performance.now();
  await revoke();
  let lastMs = 0;
  await eventually(
    'the credential to be refused',
    async () => {
      try {
        await ask();
        lastMs = performance.now() - at;
        return false;
      } catch (error) {
        return codeOf(error) === 'kube_unauthorized';
      }
    },
    { everyMs: 50, withinMs: 60_000 },
  );
  console.log(`revoked: the last request was answered ${(lastMs / 1_000).toFixed(1)} s after`);
}
