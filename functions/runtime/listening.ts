/** Whether the key of an open socket may still read the feed: keys are revoked and tenants suspended while sockets are open. */
import { type Caller, mustHave, type Origin } from '#control/access/caller.ts';
import type { Control } from '#control/control.ts';
import type { Listener } from '#control/events/listeners.ts';
import { codeOf } from '#shared/errors/app-error.ts';

/** Refuses as a request for the feed with this key would. */
export async function listenerCaller(
  { tenants }: Pick<Control, 'tenants'>,
  { tenant, keyId }: Listener,
  origin: Origin,
  signal?: AbortSignal,
): Promise<Caller> {
  const caller = await tenants.authenticateAgain(tenant, keyId, origin, signal);
  mustHave(caller, 'events:read');
  return caller;
}

/** These end a socket; after any other trouble it may be told the next time. */
export const endsListening = (error: unknown): boolean =>
  ['unauthenticated', 'forbidden', 'tenant_suspended'].includes(codeOf(error) ?? '');

export const mayListenAt =
  (control: Pick<Control, 'tenants'>) =>
  async (listener: Listener, signal: AbortSignal): Promise<boolean> => {
    try {
      await listenerCaller(control, listener, { from: 'broker', requestId: 'bell' }, signal);
      return true;
    } catch (error) {
      if (endsListening(error)) return false;
      throw error;
    }
  };
