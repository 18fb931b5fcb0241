/**
 * The composition root of every cloud function. The bundler puts it in front of a function file together with the parts that the function's
 * rights call for, so that no bundle carries a client it may not use.
 */
import { DynamoDBClient } from '@aws-sdk/client-dynamodb';
import type { Context } from 'aws-lambda';
import { type ConnectionTable, createConnectionTable } from '#control/adapters/apigateway/connections.ts';
import type { ListenerBell } from '#control/adapters/apigateway/listener-bell.ts';
import type { ListenerTable } from '#control/adapters/apigateway/listeners.ts';
import type { TenantSessions } from '#control/adapters/aws-targets/tenant-session.ts';
import { type Backoff, jitteredBackoff } from '#control/adapters/dynamodb/backoff.ts';
import { createDynamoDbStore } from '#control/adapters/dynamodb/dynamodb-store.ts';
import { createDeliveredBus } from '#control/adapters/eventbridge/delivered-bus.ts';
import type { Publisher } from '#control/adapters/eventbridge/publisher.ts';
import { createHttpsJson } from '#control/adapters/https-json/https-json.ts';
import { type Control, createControl } from '#control/control.ts';
import type { AgentChannel, ClusterRef } from '#control/ports/agent-channel.ts';
import type { EventTargetSender } from '#control/ports/event-target-sender.ts';
import type { SecretBox } from '#control/ports/secret-box.ts';
import type { Store } from '#control/ports/store.ts';
import type { WebhookSender } from '#control/ports/webhook-sender.ts';
import type { Clock } from '#shared/ports/clock.ts';
import type { Log } from '#shared/ports/log.ts';
import { systemClock } from '#shared/ports/system-clock.ts';
import { clientSettings } from './client-settings.ts';
import type { CloudComposition } from './cloud-composition.ts';
import { composeFrom } from './composition.ts';
import { CloudEnv } from './env.ts';
import { createJsonLog } from './json-log.ts';
import { storedConnections } from './stored-connections.ts';
import { createSystemIds } from './system-ids.ts';

export interface PartDeps {
  readonly env: CloudEnv;
  readonly log: Log;
  readonly connections: ConnectionTable;
  readonly backoff: Backoff;
}

export interface BellDeps extends PartDeps {
  readonly control: Control;
}

export interface CloudChannel extends AgentChannel {
  settled(): Promise<void>;
  hangUp(cluster: ClusterRef): Promise<number>;
  close(connectionId: string): Promise<void>;
}

/** What only some functions have the right to. */
export interface Parts {
  readonly channel?: (deps: PartDeps) => CloudChannel;
  readonly publisher?: (deps: PartDeps) => Publisher;
  readonly listeners?: (deps: { readonly store: Store; readonly clock: Clock }) => ListenerTable;
  readonly bell?: (deps: BellDeps) => ListenerBell;
  readonly secretBox?: (deps: PartDeps) => SecretBox;
  readonly webhookSender?: (deps: PartDeps) => WebhookSender;
  readonly eventTargetSender?: (deps: PartDeps) => EventTargetSender;
  /** Credentials for one tenant. */
  readonly sessions?: (deps: PartDeps) => TenantSessions;
}

type Handler<E, R> = (event: E, context: Context) => Promise<R>;

/** The handler that the platform calls. */
export function inCloud<E, R>(handler: Handler<E, R>, version: string, parts: Parts = {}): Handler<E, R> {
  let channel: CloudChannel | undefined;
  composeFrom(() => {
    const composed = compose(version, parts);
    channel = composed.channel;
    return composed.composition;
  });
  return async (event, context) => {
    try {
      return await handler(event, context);
    } finally {
      // What is still being sent would freeze with the process.
      await channel?.settled();
    }
  };
}

function compose(
  version: string,
  parts: Parts,
): { readonly composition: CloudComposition; readonly channel: CloudChannel } {
  const env = CloudEnv.parse(process.env);
  const log = createJsonLog(env.LOG_LEVEL);
  const clock = systemClock;
  const backoff = jitteredBackoff(clock, Math.random);
  const client = new DynamoDBClient(clientSettings);
  const store = createDynamoDbStore({ client, tableName: env.TABLE_NAME, clock, backoff });
  const listeners = parts.listeners?.({ store, clock }) ?? noListeners;
  const connections = createConnectionTable({ store, clock, listeners });
  const deps: PartDeps = { env, log, connections, backoff };
  const channel = parts.channel?.(deps) ?? withoutRight(log);
  const delivered = createDeliveredBus();
  const uses = {
    channel,
    clock,
    ids: createSystemIds(() => clock.now()),
    log,
    broker: () => ({ url: env.BROKER_URL }),
    heartbeatSeconds: env.HEARTBEAT_SECONDS,
    documents: createHttpsJson({ allowPrivateAddresses: false }),
    secretBox: parts.secretBox?.(deps) ?? closedBox,
    webhookSender: parts.webhookSender?.(deps) ?? silentSender,
    eventTargetSender: parts.eventTargetSender?.(deps) ?? {
      principal: env.EVENT_PRINCIPAL,
      send: async () => ({ error: noPosting }),
    },
  };
  const control = createControl({ ...uses, store, bus: delivered });
  const sessions = parts.sessions?.(deps);
  const controlFor = (session: TenantSessions) =>
    keptFor(keptTenants, (tenant): Control => {
      // Clients of all tenants share the connections of one.
      const { requestHandler } = client.config;
      const own = new DynamoDBClient({ ...clientSettings, requestHandler, credentials: () => session(tenant) });
      return createControl({
        ...uses,
        store: createDynamoDbStore({ client: own, tableName: env.TABLE_NAME, clock, backoff }),
        bus: createDeliveredBus(),
      });
    });
  const composition: CloudComposition = {
    control,
    ...(sessions && { controlOf: controlFor(sessions) }),
    connections: storedConnections(connections, {
      hangUp: (cluster) => channel.hangUp(cluster),
      close: (connectionId) => channel.close(connectionId),
    }),
    clock,
    log,
    version,
    metricsBroker: env.TABLE_NAME,
    // No process hears of other processes' commits: a waiting request looks at what it waits for at this interval.
    listen: () => ({
      changed: (withinMs, signal) => clock.sleep(Math.min(withinMs, pollMs), signal).then(() => true),
      end: () => undefined,
    }),
    // A WebSocket API has an address of its own; messages are posted to the same one.
    doorbellUrl: env.SOCKET_URL ?? env.SOCKET_ENDPOINT.replace(/^http/, 'ws'),
    delivered,
    publisher: parts.publisher?.(deps) ?? { publish: async (events) => events.map((_, index) => index) },
    bell: parts.bell?.({ ...deps, control }) ?? noBell(log),
  };
  return { composition, channel };
}

const pollMs = 1_000;
/** Tenants whose sessions a process keeps. */
const keptTenants = 200;

/** Makes each once; of more than `most` the oldest is made again. */
function keptFor<T>(most: number, make: (name: string) => T): (name: string) => T {
  const kept = new Map<string, T>();
  return (name) => {
    const known = kept.get(name);
    if (known !== undefined) return known;
    const [oldest] = kept.keys();
    if (kept.size >= most && oldest !== undefined) kept.delete(oldest);
    const made = make(name);
    kept.set(name, made);
    return made;
  };
}

const closed = async (): Promise<never> => {
  throw new Error('the catalogue gives this function no right to the keyring');
};
const closedBox: SecretBox = { seal: closed, open: closed };
const noPosting = 'the catalogue gives this function no right to post';
const silentSender: WebhookSender = { refusal: () => noPosting, post: async () => ({ error: noPosting }) };

/** By the catalogue this function notifies no agents. If it does all the same, agents find out at their next poll, and the log says that the catalogue is wrong. */
const withoutRight = (log: Log): CloudChannel => ({
  ring: (cluster) => log.error('this function has no right to ring', undefined, { ...cluster }),
  settled: async () => undefined,
  hangUp: async () => 0,
  close: async (connectionId) =>
    log.error('this function has no right to close connections', undefined, { connectionId }),
});

/** A function that finds connections of agents only. */
const noListeners: ListenerTable = {
  add: async () => undefined,
  of: async () => [],
  remove: async () => undefined,
};

const noBell = (log: Log): ListenerBell => ({
  tell: async () => log.error('this function has no right to tell listeners', undefined, {}),
});
