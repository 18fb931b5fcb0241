/** Tells portals over an API Gateway WebSocket API that the feed of their tenant has something new. */
import { abortsWith } from '#shared/async/abort-scope.ts';
import type { Clock } from '#shared/ports/clock.ts';
import type { Log } from '#shared/ports/log.ts';
import type { FeedFrame } from '#shared/schema/api/listening.ts';
import type { Listener } from '../../events/listeners.ts';
import type { ListenerTable, OpenListener } from './listeners.ts';
import type { SocketGateway } from './socket-gateway.ts';

export interface ListenerBell {
  /**
   * Tells each listener of these tenants, once however often its tenant is named. Gives up after a second; never rejects. A listener whose key has no
   * right to the feed any more is not told: its socket is closed. What is read at once may end before the newest event, where an earlier position of the
   * log is still open: the event that comes there is told of too.
   */
  tell(tenants: readonly string[], signal: AbortSignal): Promise<void>;
}

export interface ListenerBellOptions {
  readonly gateway: SocketGateway;
  readonly listeners: ListenerTable;
  /** Whether the key may read the feed at this moment. */
  readonly mayListen: (listener: Listener, signal: AbortSignal) => Promise<boolean>;
  readonly clock: Clock;
  readonly log: Log;
}

/** The dispatcher of all tenants' events waits for it. */
const tellMs = 1_000;
/** The entry is written before the gateway opens the connection; until then it says that the connection is gone. */
const openingMs = 30_000;

const news: FeedFrame = { type: 'events' };

export function createListenerBell(options: ListenerBellOptions): ListenerBell {
  const { gateway, listeners, mayListen, clock, log } = options;

  /** Answers with those that are gone. */
  async function tellOne(
    { connectionId, at, tenant, keyId }: OpenListener,
    may: (keyId: string) => Promise<boolean>,
    signal: AbortSignal,
  ): Promise<readonly string[]> {
    try {
      if (await may(keyId)) {
        const outcome = await gateway.post(connectionId, news, signal);
        return outcome === 'gone' && clock.now() - at > openingMs ? [connectionId] : [];
      }
      await gateway.close(connectionId, signal);
      return [connectionId];
    } catch (error) {
      log.warn('telling a listener failed', { tenant, reason: String(error) });
      return [];
    }
  }

  async function tellTenant(tenant: string, open: readonly OpenListener[], signal: AbortSignal): Promise<void> {
    const allowed = new Map<string, Promise<boolean>>();
    const may = (keyId: string): Promise<boolean> => {
      const asked = allowed.get(keyId) ?? mayListen({ tenant, keyId }, signal);
      allowed.set(keyId, asked);
      return asked;
    };
    const gone = (await Promise.all(open.map((one) => tellOne(one, may, signal)))).flat();
    if (gone.length > 0) await listeners.remove(tenant, gone, signal);
  }

  return {
    async tell(tenants, signal) {
      const bounded = abortsWith(signal, AbortSignal.timeout(tellMs));
      try {
        const open = await listeners.of([...new Set(tenants)], bounded);
        const named = new Set(open.map(({ tenant }) => tenant));
        const all = [...named].map((name) =>
          tellTenant(
            name,
            open.filter(({ tenant }) => tenant === name),
            bounded,
          ),
        );
        for (const outcome of await Promise.allSettled(all)) {
          if (outcome.status === 'rejected') log.warn('telling listeners failed', { reason: String(outcome.reason) });
        }
      } catch (error) {
        log.warn('telling listeners failed', { reason: String(error) });
      }
    },
  };
}
