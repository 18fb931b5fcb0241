/** Tells portals that listen, in one process: every commit goes through one store, and the change signal says of which feed something was committed. */
import type { WebSocket } from 'ws';
import type { Control } from '#control/control.ts';
import { awaited } from '#control/events/changes.ts';
import { type Listener, maxListeners, tooManyListeners } from '#control/events/listeners.ts';
import { mayListenAt } from '#functions/runtime/listening.ts';
import { sharedByMany } from '#shared/async/abort-scope.ts';
import type { Clock } from '#shared/ports/clock.ts';
import type { Log } from '#shared/ports/log.ts';
import type { FeedFrame } from '#shared/schema/api/listening.ts';
import type { ChangeSignal } from './change-signal.ts';
import { type StartTurns, turnOf } from './start-turns.ts';

/** The listeners of a tenant are told at once, then not more often than this. */
const gapMs = 250;
/** That the broker may look up the keys. */
const checkMs = 5_000;

export interface ListeningSockets {
  /** Throws `limit_reached`. */
  add(connectionId: string, listener: Listener): void;
  remove(connectionId: string, listener: Listener): void;
  attach(uses: Uses): void;
  /** Nothing is told after it. */
  close(): void;
}

interface Uses {
  readonly control: Pick<Control, 'tenants'>;
  readonly clock: Clock;
  readonly log: Log;
  readonly turns: StartTurns;
  readonly hear: ChangeSignal['hear'];
}

interface OfTenant {
  /** Connections by id, with the key of each. */
  readonly keys: Map<string, string>;
  /** A frame that waits in this process for its client says already what the next one would. */
  readonly unsent: Set<string>;
  deaf: () => void;
  busy: boolean;
  again: boolean;
}

const news = JSON.stringify({ type: 'events' } satisfies FeedFrame);

export function createListeningSockets(socketOf: (connectionId: string) => WebSocket | undefined): ListeningSockets {
  const tenants = new Map<string, OfTenant>();
  const stopping = new AbortController();
  let uses: Uses | undefined;

  function send({ unsent }: OfTenant, connectionId: string): void {
    const socket = socketOf(connectionId);
    if (socket?.readyState !== 1 || unsent.has(connectionId)) return;
    unsent.add(connectionId);
    socket.send(news, () => unsent.delete(connectionId));
  }

  async function tell(tenant: string, of: OfTenant, { control, turns }: Uses): Promise<void> {
    await turns.take(turnOf(tenant));
    const may = mayListenAt(control);
    for (const keyId of new Set(of.keys.values())) {
      const allowed = await may({ tenant, keyId }, AbortSignal.timeout(checkMs));
      for (const [connectionId, ofKey] of of.keys) {
        if (ofKey !== keyId) continue;
        if (allowed) send(of, connectionId);
        else socketOf(connectionId)?.close(1008, 'the API key may not read events any more');
      }
    }
  }

  async function tellUntilQuiet(tenant: string, of: OfTenant, using: Uses): Promise<void> {
    of.busy = true;
    try {
      do {
        of.again = false;
        await tell(tenant, of, using).catch((error: unknown) =>
          using.log.warn('telling listeners failed', { tenant, reason: String(error) }),
        );
        await using.clock.sleep(gapMs, sharedByMany(stopping.signal));
      } while (of.again);
    } catch {
      // The broker stops.
    } finally {
      of.busy = false;
    }
  }

  function hearFor(tenant: string): OfTenant {
    const of: OfTenant = { keys: new Map(), unsent: new Set(), deaf: () => undefined, busy: false, again: false };
    const hear = (): void => {
      of.again = true;
      if (uses !== undefined && !of.busy && !stopping.signal.aborted) void tellUntilQuiet(tenant, of, uses);
    };
    if (uses !== undefined) of.deaf = uses.hear(awaited.events(tenant, undefined), hear);
    tenants.set(tenant, of);
    return of;
  }

  return {
    add(connectionId, { tenant, keyId }) {
      const of = tenants.get(tenant) ?? hearFor(tenant);
      if (of.keys.size >= maxListeners) throw tooManyListeners(tenant);
      of.keys.set(connectionId, keyId);
    },
    remove(connectionId, { tenant }) {
      const of = tenants.get(tenant);
      if (of === undefined) return;
      of.keys.delete(connectionId);
      of.unsent.delete(connectionId);
      if (of.keys.size > 0) return;
      of.deaf();
      tenants.delete(tenant);
    },
    attach(given) {
      uses = given;
    },
    close() {
      stopping.abort();
    },
  };
}
