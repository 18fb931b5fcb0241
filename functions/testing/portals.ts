/** Portals that listen at a hosted broker, without a network: the very functions, on the store of an API fixture, each with the rights of its role. */
import { createConnectionTable } from '#control/adapters/apigateway/connections.ts';
import { createListenerBell } from '#control/adapters/apigateway/listener-bell.ts';
import { createListenerTable } from '#control/adapters/apigateway/listeners.ts';
import { eventItem } from '#control/adapters/dynamodb/outbox-item.ts';
import type { NewEvent, Store } from '#control/ports/store.ts';
import { handler as connect } from '#functions/channel/connect.ts';
import { handler as disconnect } from '#functions/channel/disconnect.ts';
import { handler as message } from '#functions/channel/message.ts';
import type { SocketEvent, SocketFunction } from '#functions/channel/socket.ts';
import { handler as dispatch } from '#functions/events/dispatch.ts';
import { fromGatewayResult } from '#functions/local/gateway-event.ts';
import { invocationContext } from '#functions/local/invocation.ts';
import type { CloudComposition } from '#functions/runtime/cloud-composition.ts';
import { mayListenAt } from '#functions/runtime/listening.ts';
import { storedConnections } from '#functions/runtime/stored-connections.ts';
import { silentLog } from '#shared/ports/log.ts';
import type { ApiFixture } from './api-fixture.ts';

export interface RecordedEvents {
  wrap(store: Store): Store;
  /** Committed since the last call. */
  take(): readonly NewEvent[];
}

/** What the table's stream would hold. */
export function recordEvents(): RecordedEvents {
  let committed: NewEvent[] = [];
  return {
    wrap: (store) => ({
      ...store,
      async transact(ops, events, signal) {
        await store.transact(ops, events, signal);
        committed.push(...(events ?? []));
      },
    }),
    take() {
      const taken = committed;
      committed = [];
      return taken;
    },
  };
}

interface Posted {
  readonly connectionId: string;
  readonly frame: unknown;
}

export interface Portals {
  connect(connectionId: string, key: string): Promise<{ readonly status: number; readonly code?: string }>;
  /** `frame`: JSON, or a text as it is. */
  say(connectionId: string, frame: unknown): Promise<{ readonly status: number; readonly body?: unknown }>;
  disconnect(connectionId: string): Promise<void>;
  /** What was committed goes through the dispatcher. Of which streams it was, and which frames were posted. */
  dispatch(): Promise<{ readonly streams: ReadonlySet<string>; readonly frames: readonly Posted[] }>;
  isOpen(connectionId: string): boolean;
  /** The client leaves without `$disconnect`. */
  vanish(connectionId: string): void;
  /** Connections that the store knows of this tenant. */
  known(tenant: string): Promise<readonly string[]>;
}

export function openPortals(fixture: ApiFixture, events: RecordedEvents): Portals {
  const { control, clock, guard } = fixture;
  const open = new Set<string>();
  let frames: Posted[] = [];
  const stored = { store: guard.guarded(fixture.store), clock };
  const table = createConnectionTable({ ...stored, listeners: createListenerTable(stored) });
  const close = async (connectionId: string): Promise<void> => {
    open.delete(connectionId);
    await table.remove(connectionId);
  };
  const composition: CloudComposition = {
    ...fixture.composition,
    connections: storedConnections(table, { hangUp: async () => 0, close }),
    delivered: { deliver: async () => undefined } as unknown as CloudComposition['delivered'],
    publisher: { publish: async () => [] },
    bell: createListenerBell({
      gateway: {
        async post(connectionId, frame) {
          if (!open.has(connectionId)) return 'gone';
          frames.push({ connectionId, frame });
          return 'sent';
        },
        close: async (connectionId) => void open.delete(connectionId),
      },
      listeners: table.listeners,
      mayListen: mayListenAt(control),
      clock,
      log: silentLog,
    }),
  };

  async function invoke(run: SocketFunction, route: string, connectionId: string, over: Partial<SocketEvent>) {
    const requestContext = { connectionId, requestId: 'rq', identity: { sourceIp: '192.0.2.1' } };
    const event = { requestContext, isBase64Encoded: false, ...over } as unknown as SocketEvent;
    const result = await guard.asFunctionOf(route, () => run(event, invocationContext(composition, route, 'rq')));
    const { statusCode, body } = fromGatewayResult(result);
    return { status: statusCode, body: body.length === 0 ? undefined : JSON.parse(body.toString()) };
  }

  return {
    async connect(connectionId, key) {
      const headers = { authorization: `Bearer ${key}` };
      const { status, body } = await invoke(connect, '$connect', connectionId, { headers });
      if (status === 200) open.add(connectionId);
      return { status, ...(body && { code: body.code }) };
    },
    say: (connectionId, frame) => {
      const body = typeof frame === 'string' ? frame : JSON.stringify(frame);
      return invoke(message, '$default', connectionId, { body });
    },
    async disconnect(connectionId) {
      open.delete(connectionId);
      await invoke(disconnect, '$disconnect', connectionId, {});
    },
    async dispatch() {
      frames = [];
      const taken = events.take();
      const Records = taken.map((event, n) => ({
        dynamodb: { NewImage: eventItem(event, { n, takenAt: 0 }, 0), SequenceNumber: String(n) },
      }));
      await guard.asFunctionOf('events-dispatch', () =>
        dispatch({ Records } as never, invocationContext(composition, 'events-dispatch', 'rq')),
      );
      return { streams: new Set(taken.map(({ stream }) => stream)), frames };
    },
    isOpen: (connectionId) => open.has(connectionId),
    vanish: (connectionId) => void open.delete(connectionId),
    known: async (tenant) => (await table.listeners.of([tenant])).map(({ connectionId }) => connectionId),
  };
}
