/**
 * The hosted broker in one process: the very handlers of `functions/`, called as the platform would call them, with everything that would be
 * billed counted. Wiring that infrastructure does (stream to dispatcher, rules to functions) is done by `settle`.
 */
import type { Context } from 'aws-lambda';
import { type ConnectionTable, createConnectionTable } from '#control/adapters/apigateway/connections.ts';
import { createListenerBell } from '#control/adapters/apigateway/listener-bell.ts';
import { createListenerTable } from '#control/adapters/apigateway/listeners.ts';
import { eventItem } from '#control/adapters/dynamodb/outbox-item.ts';
import { createDeliveredBus } from '#control/adapters/eventbridge/delivered-bus.ts';
import { createMemoryStore } from '#control/adapters/memory/memory-store.ts';
import { type Control, createControl } from '#control/control.ts';
import { selfHostedLimits } from '#control/limits/limits.ts';
import type { Limits } from '#control/model/limits.ts';
import { createExchange, type Exchange } from '#control/peerings/agent-exchange/exchange.ts';
import type { ClusterRef } from '#control/ports/agent-channel.ts';
import type { NewEvent, Store } from '#control/ports/store.ts';
import { cloudFunctions } from '#functions/catalogue.ts';
import { handler as connect } from '#functions/channel/connect.ts';
import { handler as disconnect } from '#functions/channel/disconnect.ts';
import { handler as message } from '#functions/channel/message.ts';
import type { SocketEvent, SocketFunction } from '#functions/channel/socket.ts';
import { handler as clusterLeft } from '#functions/events/cluster-left.ts';
import { handler as dispatch } from '#functions/events/dispatch.ts';
import { handler as peerings } from '#functions/events/peerings.ts';
import { fromGatewayResult, toGatewayEvent } from '#functions/local/gateway-event.ts';
import { createRouter } from '#functions/local/gateway-router.ts';
import { invocationContext } from '#functions/local/invocation.ts';
import { httpFunctions } from '#functions/routes.ts';
import { detailOf } from '#functions/runtime/bus-event.ts';
import { eventSource, patterns } from '#functions/runtime/bus-patterns.ts';
import type { CloudComposition } from '#functions/runtime/cloud-composition.ts';
import { createJsonLog } from '#functions/runtime/json-log.ts';
import { mayListenAt } from '#functions/runtime/listening.ts';
import { problemResponse } from '#functions/runtime/problem.ts';
import { storedConnections } from '#functions/runtime/stored-connections.ts';
import { createSystemIds } from '#functions/runtime/system-ids.ts';
import { handler as sweep } from '#functions/schedule/sweep.ts';
import { ManualClock } from '#shared/ports/clock.ts';
import { handlerMs, Meter, tableRoundTripMs } from './meter.ts';
import { meteredStore } from './metered-store.ts';

export const brokerUrl = 'https://broker.example.com';

export interface Answer {
  readonly status: number;
  // biome-ignore lint/suspicious/noExplicitAny: answers of every shape
  readonly body: any;
}

interface HttpCall {
  readonly method: string;
  /** With its query. */
  readonly path: string;
  readonly authorization?: string;
  readonly body?: unknown;
}

export interface CloudModel {
  readonly clock: ManualClock;
  readonly meter: Meter;
  readonly control: Control;
  readonly store: Store;
  http(call: HttpCall): Promise<Answer>;
  /** WebSocket: `connect` needs an authorization, `message` a body. Answers with what the agent receives. */
  socket(route: '$connect' | '$default' | '$disconnect', connectionId: string, what?: SocketInput): Promise<Answer>;
  /** Called with every frame that the broker posts to a connection. */
  onFrame: (connectionId: string, frame: unknown) => void;
  /** Dispatches what was committed and runs the functions of the rules, until nothing is left. */
  settle(): Promise<void>;
  /** One run of the schedule. */
  sweep(): Promise<void>;
}

interface SocketInput {
  readonly authorization?: string;
  readonly body?: string;
}

export interface CloudModelOptions {
  readonly clock?: ManualClock;
  readonly meter?: Meter;
  /** Default: memory, counted by the sizes of items. Otherwise the caller counts. */
  readonly store?: Store;
  readonly limits?: Limits;
  /** Reports are stored and answered; what they mean is decided by the functions that events start. */
  readonly eventsDecide?: boolean;
}

const memoryOf = new Map(cloudFunctions.map(({ name, memoryMb }) => [name, memoryMb]));
const nameOfRoute = new Map<string, string>(
  cloudFunctions.flatMap(({ name, trigger }) =>
    trigger.kind === 'http' ? [[`${trigger.method} ${trigger.path}`, name] as const] : [],
  ),
);
const frameSize = 32 * 1_024;

interface Rule {
  readonly name: string;
  readonly pattern: (typeof patterns)[keyof typeof patterns];
}
const rules: readonly Rule[] = [
  { name: 'events-peerings', pattern: patterns.peerings },
  { name: 'events-cluster-left', pattern: patterns.clusterLeft },
];

/** EventBridge's matching, as far as our rules use it; `patterns.real.test.ts` holds the patterns against AWS's own matcher. */
const matches = ({ pattern }: Rule, { type }: NewEvent): boolean =>
  (pattern['detail-type'] as readonly string[]).includes(type);

/** The exchange of a request path that decides nothing. Without requests from inside clusters, which no scenario makes. */
const storing = (deps: Parameters<typeof createExchange>[0]): Exchange =>
  createExchange(deps, {
    coordinator: { look: async () => true, lookAtCluster: async () => undefined, isLive: async () => true },
    inClusterRequests: {
      accept: async () => undefined,
      review: async () => undefined,
      reviewAbout: async () => undefined,
      answers: async () => [],
    },
  });

export function createCloudModel(options: CloudModelOptions = {}): CloudModel {
  const { clock = new ManualClock(), meter = new Meter() } = options;
  const plain = options.store ?? createMemoryStore({ clock });
  const counted = options.store ?? meteredStore(plain, meter);
  /** By commit. */
  let pending: (readonly NewEvent[])[] = [];
  const store: Store = {
    ...counted,
    async transact(ops, events, signal) {
      await counted.transact(ops, events, signal);
      if (!events || events.length === 0) return;
      pending.push(events);
    },
  };
  const ids = createSystemIds(() => clock.now());
  // Lines as the functions of production write them.
  const log = createJsonLog('info', { write: (line) => meter.logLine(Buffer.byteLength(line)) });
  const connections: ConnectionTable = createConnectionTable({
    store,
    clock,
    listeners: createListenerTable({ store, clock }),
  });
  const ringing = new Set<Promise<unknown>>();
  const delivered = createDeliveredBus();
  const control = createControl({
    store,
    bus: delivered,
    channel: {
      ring(cluster: ClusterRef, revision: number) {
        const work = connections.of(cluster).then((all) => {
          for (const connectionId of all) {
            meter.add('socketMessage');
            meter.call('socket: ring');
            model.onFrame(connectionId, { type: 'desired', revision });
          }
        });
        ringing.add(work);
        void work.finally(() => ringing.delete(work));
      },
    },
    clock,
    ids,
    log,
    broker: () => ({ url: brokerUrl }),
    limits: options.limits ?? selfHostedLimits,
  });
  const composition: CloudComposition = {
    control: options.eventsDecide ? { ...control, exchange: storing({ store, clock, ids, log }) } : control,
    connections: storedConnections(connections, { hangUp: async () => 0, close: async () => undefined }),
    clock,
    log,
    metricsBroker: 'isthmus-production',
    version: '0',
    listen: () => ({ changed: async () => true, end: () => undefined }),
    doorbellUrl: 'wss://bell.example.com',
    delivered,
    publisher: { publish: async () => [] },
    bell: createListenerBell({
      gateway: {
        async post(connectionId, frame) {
          meter.add('socketMessage');
          meter.call('socket: news');
          model.onFrame(connectionId, frame);
          return 'sent';
        },
        close: async () => undefined,
      },
      listeners: connections.listeners,
      mayListen: mayListenAt(control),
      clock,
      log,
    }),
  };
  const router = createRouter(httpFunctions);

  /** Runs one function and bills it. Calls to the table that it makes at once are billed as if they were made one after the other. */
  async function invoke<T>(name: string, work: (context: Context) => Promise<T>): Promise<T> {
    const callsBefore = meter.tableCalls;
    try {
      return await work(invocationContext(composition, name, ids.next('req')));
    } finally {
      await Promise.all(ringing);
      const ms = handlerMs + (meter.tableCalls - callsBefore) * tableRoundTripMs;
      meter.invocation(name, memoryOf.get(name) ?? 256, ms);
    }
  }

  const sockets: Readonly<Record<string, { readonly name: string; readonly run: SocketFunction }>> = {
    $connect: { name: 'channel-connect', run: connect },
    $default: { name: 'channel-message', run: message },
    $disconnect: { name: 'channel-disconnect', run: disconnect },
  };

  const model: CloudModel = {
    clock,
    meter,
    control,
    store,
    onFrame: () => undefined,

    async http({ method, path, authorization, body }) {
      meter.add('httpRequest');
      const requestId = ids.next('req');
      const text = body === undefined ? '' : JSON.stringify(body);
      const result = await (async () => {
        const { run, ...route } = router(method, path.split('?')[0] ?? '');
        const headers = {
          ...(authorization && { authorization }),
          ...(text !== '' && { 'content-type': 'application/json' }),
        };
        const request = {
          method,
          url: path,
          headers,
          sourceIp: '192.0.2.1',
          body: Buffer.from(text),
          requestId,
          receivedAt: clock.now(),
        };
        const name = nameOfRoute.get(route.routeKey) ?? route.routeKey;
        return invoke(name, (context) => run(toGatewayEvent(request, route), context));
      })().catch((error: unknown) => problemResponse(error, requestId));
      const answer = fromGatewayResult(result);
      return {
        status: answer.statusCode,
        body: answer.body.length === 0 ? undefined : JSON.parse(String(answer.body)),
      };
    },

    async socket(route, connectionId, { authorization, body } = {}) {
      const { name, run } = sockets[route] ?? { name: '', run: message };
      if (body !== undefined) meter.add('socketMessage', Math.ceil(body.length / frameSize));
      const requestContext = {
        routeKey: route,
        connectionId,
        requestId: ids.next('req'),
        identity: { sourceIp: '192.0.2.1' },
      };
      const event = {
        requestContext,
        isBase64Encoded: false,
        ...(authorization && { headers: { authorization } }),
        ...(body !== undefined && { body }),
      } as unknown as SocketEvent;
      const answer = fromGatewayResult(await invoke(name, (context) => run(event, context)));
      const sent = route === '$default' && answer.body.length > 0;
      if (sent) meter.add('socketMessage', Math.ceil(answer.body.length / frameSize));
      return { status: answer.statusCode, body: sent ? JSON.parse(String(answer.body)) : undefined };
    },

    async settle() {
      while (pending.length > 0) {
        const commits = pending;
        pending = [];
        // Lambda gathers records for no longer than it must: each commit is one batch.
        for (const events of commits) {
          const Records = events.map((event, n) => ({
            dynamodb: { NewImage: eventItem(event, { n, takenAt: 0 }, n), SequenceNumber: String(n) },
          }));
          await invoke('events-dispatch', (context) => dispatch({ Records } as never, context));
        }
        for (const event of commits.flat()) {
          meter.add('busEvent', Math.ceil(Buffer.byteLength(JSON.stringify(detailOf(event))) / 65_536));
          for (const rule of rules) if (matches(rule, event)) await react(rule.name, event);
        }
      }
    },

    async sweep() {
      meter.add('schedulerRun');
      await invoke('schedule-sweep', (context) => sweep({}, context));
    },
  };

  async function react(name: string, event: NewEvent): Promise<void> {
    const bridged = {
      id: event.id,
      'detail-type': event.type,
      source: eventSource,
      time: new Date(event.at).toISOString(),
      detail: detailOf(event),
    };
    const run = name === 'events-cluster-left' ? clusterLeft : peerings;
    await invoke(name, async (context) => run(bridged as never, context));
  }

  return model;
}
