/** The whole broker in one process: HTTPS and WebSocket in front of the very handlers of the cloud, SQLite and the outbox bus behind. */
import type { RequestListener } from 'node:http';
import type { Server } from 'node:https';
import type { AddressInfo } from 'node:net';
import path from 'node:path';
import { createHttpsJson } from '#control/adapters/https-json/https-json.ts';
import { createLocalBus } from '#control/adapters/local-bus/local-bus.ts';
import { createSealedBox } from '#control/adapters/sealed-box/sealed-box.ts';
import { openSqliteStore } from '#control/adapters/sqlite/sqlite-store.ts';
import { createWebhookHttp } from '#control/adapters/webhook-http/webhook-http.ts';
import { type Control, createControl } from '#control/control.ts';
import { selfHostedLimits } from '#control/limits/limits.ts';
import type { Limits } from '#control/model/limits.ts';
import { httpFunctions } from '#functions/routes.ts';
import type { Composition } from '#functions/runtime/composition.ts';
import { createSystemIds } from '#functions/runtime/system-ids.ts';
import { AppError } from '#shared/errors/app-error.ts';
import type { Clock } from '#shared/ports/clock.ts';
import type { Log } from '#shared/ports/log.ts';
import { systemClock } from '#shared/ports/system-clock.ts';
import { openAwsTargets } from './aws-targets.ts';
import { database } from './backup.ts';
import { boxKeyIn } from './box-key.ts';
import { listenIn } from './change-signal.ts';
import { withConsole } from './console-gateway.ts';
import { createSessions } from './console-session.ts';
import { checkOrigins, withCrossOrigin } from './cross-origin.ts';
import { lockDirectory } from './data-lock.ts';
import { subscribeEventFunctions } from './event-functions.ts';
import { createRouter } from './gateway-router.ts';
import { createHttpGateway } from './http-gateway.ts';
import { defaultPublicUrl, parseListenAddress, parsePublicUrl, servingNames } from './listen-address.ts';
import { serveBrokerMetrics } from './metrics.ts';
import { createNotifySockets } from './notify-sockets.ts';
import type { CertificateFiles } from './own-certificate.ts';
import { makePrivateDirectory } from './private-files.ts';
import { trustProxies } from './proxies.ts';
import { withReadiness } from './readiness.ts';
import { serveCertificate } from './serving-certificate.ts';
import { createStartTurns } from './start-turns.ts';
import { createTlsServer } from './tls-server.ts';
import { boundUnreadAnswers } from './unread-answers.ts';
import { upgradeData } from './upgrade.ts';
import { watchWrites } from './write-health.ts';

export interface BrokerOptions {
  readonly dataDir: string;
  /** `HOST:PORT`; port 0 lets the system choose. */
  readonly listen: string;
  /** How agents reach it; default: derived from `listen`. Join tokens carry it and agents sign for it. */
  readonly publicUrl?: string;
  readonly tenant?: string;
  /** Issue one more admin key: the way back in when the first is lost. */
  readonly newAdminKey?: boolean;
  readonly heartbeatSeconds?: number;
  /** Of each tenant; default: those of a self-hosted broker. */
  readonly limits?: Limits;
  /** Issue one more operator key. */
  readonly newOperatorKey?: boolean;
  /** Identity providers may have addresses that are not public. */
  readonly allowPrivateIssuers?: boolean;
  /** This process has an identity at AWS, by this ARN, and may put events into buses and queues of tenants that trust it. */
  readonly awsPrincipal?: string;
  /** Webhooks may have addresses that are not public, and plain HTTP on loopback. */
  readonly allowPrivateWebhooks?: boolean;
  /** A serving certificate of the operator's own, instead of one of the broker's own authority. */
  readonly certificate?: CertificateFiles;
  /** Addresses and CIDR blocks of proxies that are believed when they say whom a request comes from. */
  readonly trustedProxies?: readonly string[];
  /** Origins whose pages may use the REST API, for example `https://portal.example.com`. */
  readonly corsOrigins?: readonly string[];
  /** Requests with `?wait=` are answered after this at the latest. */
  readonly longestWaitSeconds?: number;
  /** `HOST:PORT` of loopback for `/metrics`; absent: it is served nowhere. */
  readonly metrics?: string;
  /** Finds the folder of the built console when its page is first asked for; absent: there is no console. */
  readonly consoleFolder?: () => Promise<string>;
  readonly log: Log;
  readonly clock?: Clock;
  readonly version: string;
}

export interface Broker {
  readonly url: string;
  readonly port: number;
  /** Of the broker's own authority, or of the root in the operator's certificate file. Empty: clients trust by the roots of their system. */
  readonly caPem: string;
  /** Empty as `caPem` is. */
  readonly caHash: string;
  /** Where `caPem` can be read, or the operator's certificate file. */
  readonly caFile: string;
  readonly tenant: string;
  /** At the first start, and with `newAdminKey`; stored only as a hash. */
  readonly adminKey?: string;
  /** At the first start, and with `newOperatorKey`: makes tenants. */
  readonly operatorKey?: string;
  readonly control: Control;
  /** Rejects when the background work fails for good. */
  readonly failed: Promise<never>;
  /** Of `/metrics`; absent: it is served nowhere. */
  readonly metricsPort?: number;
  /** How many long polls wait right now. */
  readonly waiting: () => number;
  /** Finishes what was accepted, refuses new requests, closes the store. */
  close(): Promise<void>;
}

const drainMs = 5_000;
const origin = { from: 'local', requestId: 'start' } as const;

export async function startBroker(options: BrokerOptions): Promise<Broker> {
  const { dataDir, log, clock = systemClock, tenant = 'default', version } = options;
  const address = parseListenAddress(options.listen);
  const askedUrl = options.publicUrl === undefined ? undefined : parsePublicUrl(options.publicUrl);
  const proxies = trustProxies(options.trustedProxies ?? []);
  const origins = checkOrigins(options.corsOrigins ?? []);
  await makePrivateDirectory(dataDir);
  const unlock = lockDirectory(dataDir);
  const stopping = new AbortController();
  const metrics = await serveBrokerMetrics(options.metrics, version).catch((error: unknown) => {
    unlock();
    throw error;
  });
  const server = createTlsServer({ isShared: proxies.includes });
  let gateway: RequestListener = (_request, response) => {
    response.writeHead(503, { 'retry-after': '1' }).end();
  };
  server.on('request', (request, response) => gateway(request, response));
  const { store, ready } = await openStore(dataDir, clock, log).catch((error: unknown) => {
    metrics.close();
    unlock();
    throw error;
  });
  try {
    const names = servingNames(address.host, askedUrl);
    const tls = await serveCertificate(server, { dataDir, names, clock, log, certificate: options.certificate });
    const ids = createSystemIds(() => clock.now());
    await listen(server, address.host, address.port);
    const { port } = server.address() as AddressInfo;
    const url = askedUrl ?? defaultPublicUrl(address.host, port);

    const doorbells = createNotifySockets(proxies);
    const turns = createStartTurns();
    const bus = createLocalBus({ store, clock, log });
    const changes = listenIn(store, { clock, turns, stopping: stopping.signal });
    const secretBox = createSealedBox(await boxKeyIn(dataDir));
    const control = createControl({
      store: changes.store,
      bus,
      channel: doorbells,
      clock,
      ids,
      log,
      broker: () => ({ url, ...(tls.caHash !== undefined && { caHash: tls.caHash }) }),
      limits: options.limits ?? selfHostedLimits,
      documents: createHttpsJson({ allowPrivateAddresses: options.allowPrivateIssuers === true }),
      secretBox,
      webhookSender: createWebhookHttp({ allowPrivateAddresses: options.allowPrivateWebhooks === true }),
      ...(options.awsPrincipal !== undefined && {
        eventTargetSender: await openAwsTargets(options.awsPrincipal, clock),
      }),
      ...(options.heartbeatSeconds !== undefined && { heartbeatSeconds: options.heartbeatSeconds }),
    });
    const adminKey = await firstKey(control, tenant, options.newAdminKey === true);
    const operatorKey =
      (await control.tenants.operators.bootstrap(origin)) ??
      (options.newOperatorKey ? await control.tenants.operators.issue(origin) : undefined);
    const composition: Composition = {
      control,
      connections: doorbells.connections,
      clock,
      log,
      version,
      listen: changes.listen,
      ...(options.longestWaitSeconds !== undefined && { longestWaitSeconds: options.longestWaitSeconds }),
    };
    subscribeEventFunctions(bus, composition);
    doorbells.attach(server, composition, { ids, turns, hear: changes.hear });
    const api = createHttpGateway(composition, createRouter(httpFunctions), ids, {
      proxies,
      turns,
      onAnswer: metrics.onAnswer,
    });
    metrics.follow({ sockets: () => doorbells.size, waiting: changes.waiting });
    const { consoleFolder: folder } = options;
    const sessions = createSessions(secretBox, clock);
    const all =
      folder === undefined
        ? api
        : withConsole(api, { composition, sessions, ids, proxies, folder, broker: { url, caHash: tls.caHash ?? '' } });
    gateway = boundUnreadAnswers(withCrossOrigin(withReadiness(all, ready), origins, ids), {
      clientOf: proxies.clientOf,
    });
    const running = control.run(stopping.signal);
    const renewing = tls.keepFresh(stopping.signal);
    const failed = Promise.all([running, renewing]).then(() => new Promise<never>(() => undefined));
    failed.catch(() => undefined);
    log.info('broker started', { url, tenant, dataDir, version });

    return {
      url,
      port,
      caPem: tls.caPem ?? '',
      caHash: tls.caHash ?? '',
      caFile: options.certificate?.certFile ?? path.join(dataDir, 'tls', 'ca.pem'),
      tenant,
      ...(adminKey !== undefined && { adminKey }),
      ...(operatorKey !== undefined && { operatorKey }),
      control,
      failed,
      waiting: changes.waiting,
      ...(metrics.port !== undefined && { metricsPort: metrics.port }),
      async close() {
        if (stopping.signal.aborted) return;
        log.info('broker stopping');
        const closed = new Promise<void>((resolve) => server.close(() => resolve()));
        stopping.abort(new AppError('broker_unreachable', 'the broker is stopping'));
        await doorbells.close();
        metrics.close();
        server.closeIdleConnections();
        const force = setTimeout(() => server.closeAllConnections(), drainMs);
        await closed;
        clearTimeout(force);
        await Promise.allSettled([running, renewing]);
        await store.close();
        unlock();
        log.info('broker stopped');
      },
    };
  } catch (error) {
    stopping.abort(error);
    metrics.close();
    server.close();
    await store.close();
    unlock();
    throw error;
  }
}

async function openStore(dataDir: string, clock: Clock, log: Log) {
  const { copy, ...formats } = await upgradeData(dataDir, clock.now());
  if (copy !== undefined) log.info('the data of an older program is upgraded', { ...formats, copy });
  return watchWrites(openSqliteStore({ path: path.join(dataDir, database), clock }), { clock, log });
}

function listen(server: Server, host: string, port: number): Promise<void> {
  return new Promise((resolve, reject) => {
    server.once('error', (cause: NodeJS.ErrnoException) =>
      reject(
        new AppError('host_unsupported', `cannot listen on ${host}:${port}: ${cause.message}`, {
          cause,
          detail: { field: 'listen', value: `${host}:${port}`, remedy: 'name a free address with --listen' },
        }),
      ),
    );
    server.listen(port, host, resolve);
  });
}

async function firstKey(control: Control, tenant: string, another: boolean): Promise<string | undefined> {
  const first = await control.tenants.bootstrap(tenant, origin);
  if (first !== undefined) return first.secret;
  if (!another) return undefined;
  const self = { ...origin, tenant, principal: 'system', role: 'admin' } as const;
  return (await control.tenants.createKey(self, { name: 'admin (issued at start)', role: 'admin' })).secret;
}
