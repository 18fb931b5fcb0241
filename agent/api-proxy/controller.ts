/** Provider: keeps the address of the API server's proxy, and keeps the proxy open while a consumer may use it. */
import { type ApiProxy, startApiProxy } from '#agent/api-proxy/server.ts';
import { rangeIps } from '#agent/model/network-selections.ts';
import { peerSecrets, tenantsByCluster } from '#agent/model/peering-selections.ts';
import { networkOfType } from '#agent/network/ranges/cluster-ipam.ts';
import { endpointSlices } from '#agent/network/ranges/ip/decide.ts';
import { ensureExposedService } from '#agent/network/ranges/ip/exposed-service.ts';
import { doorOf } from '#agent/peering/credentials/front-door.ts';
import type { Applied, Cluster, Controller } from '#kube/model/types.ts';
import { type ControllerDeps, createController, watch } from '#kube/run/controller.ts';
import { covers, deleteObject, writeStatus } from '#kube/writes/write-if-changed.ts';
import { services } from '#shared/domain/core-kinds.ts';
import type { KubeObject, ResourceType } from '#shared/domain/kube-object.ts';
import { fieldManager, isthmusLabel, label } from '#shared/domain/liqo-keys.ts';
import { ipType, networkPort, networkType } from '#shared/domain/network-keys.ts';
import { again, type Outcome, settled } from '#shared/domain/outcome.ts';
import type { Ids } from '#shared/ports/ids.ts';
import { networkKinds } from '#shared/schema/liqo/network-resources.ts';
import { tenantConditionType, tenants as tenantKind } from '#shared/schema/liqo/tenant.ts';
import { ProxyAuthorizer, type ProxyTarget, type TokenEvidence } from './authorizer.ts';
import {
  buildProxyEndpoints,
  buildProxyService,
  consumerAt,
  leadsHere,
  linkedClusters,
  linkRanges,
  needsNoToken,
  proxyKey,
  proxyServiceName,
  proxyTargets,
  proxyUsers,
  tokenConditions,
} from './decide.ts';
import { createDoorKeeper } from './door-keeper.ts';

export interface ApiServerProxyDeps extends ControllerDeps {
  readonly cluster: Cluster;
  readonly clusterId: string;
  readonly systemNamespace: string;
  readonly ids: Ids;
  /** How peers know this API server. */
  readonly apiServerUrl: string;
  /** Where it is from here. */
  readonly upstream: { readonly host: string; readonly port: number };
  /** The same for requests of our own, and the CA that it is verified with. */
  readonly apiServer: { readonly server: URL; readonly ca: string | undefined };
  /** Of this process, for the Service. */
  readonly podIp: string;
  /** Where this process runs; without it callers are hidden behind the node of the gateway. */
  readonly nodeName?: string;
  /** Of proxy and front door. Default: the well-known ones; 0: any. */
  readonly port?: number;
  /** Default: every address. */
  readonly host?: string;
}

const key = 'proxy';
/** A consumer without tokens connects constantly, so its condition is reviewed this often. */
const tokenlessEveryMs = 5_000;
const doorCheckMs = 12 * 3_600_000;

export function createApiServerProxyController(deps: ApiServerProxyDeps): Controller {
  const { cluster, clusterId, systemNamespace: namespace, ids, clock, log, podIp, nodeName } = deps;
  const { api, caches } = cluster;
  const managed = { labelSelector: `${label.managed}=true` };
  const serviceCache = caches.cache(services, managed);
  const sliceCache = caches.cache(endpointSlices, managed);
  const tenants = tenantsByCluster(caches);
  const ips = rangeIps(caches);
  const networks = caches.cache(networkKinds.networks);
  const configurations = caches.cache(networkKinds.configurations);
  const targets = proxyTargets(deps.apiServerUrl);
  const serviceRef = { namespace, name: proxyServiceName };
  const secrets = peerSecrets(caches);
  const door = createDoorKeeper({
    ...{ api, tenants, secrets, systemNamespace: namespace, clock, log, upstream: deps.apiServer },
    ...(deps.port !== undefined && { port: deps.port }),
    ...(deps.host !== undefined && { host: deps.host }),
  });
  let proxy: ApiProxy | undefined;
  /** Of this run of the proxy. */
  const welcome = new Map<string, { readonly since: number; readonly byAddress: boolean }>();
  const withToken = new Set<string>();
  const fromLink = new Set<string>();
  let tokenless: { readonly at: number; readonly from: string } | undefined;

  // Asked at each connection: what a Tenant says now counts.
  const usersOf = (consumer: string) =>
    proxyUsers(tenants.byIndex('cluster', consumer), linkedClusters(configurations.list()));
  const keysOf = (consumer: string, purpose: ProxyTarget) =>
    usersOf(consumer)
      .filter(({ isInBand }) => isInBand || purpose === 'certificate')
      .flatMap(({ publicKey }) => proxyKey(publicKey) ?? []);
  const linkedConsumerAt = (from: string) => consumerAt(from, tenants.list(), configurations.list());
  const credentialFor = (consumer: string): string | undefined =>
    usersOf(consumer).find(({ credential }) => credential !== undefined)?.credential;

  function recordEvidence(news: TokenEvidence): void {
    if ('consumer' in news) {
      const known = news.byAddress ? fromLink : withToken;
      if (known.has(news.consumer)) return;
      known.add(news.consumer);
    } else {
      const before = tokenless?.at ?? Number.NEGATIVE_INFINITY;
      if (clock.now() - before < tokenlessEveryMs) return;
      tokenless = { at: clock.now(), from: news.tokenlessFrom };
    }
    controller.enqueue(key);
  }

  /** Reports on Tenants which consumers connect without the tokens that they need here. */
  async function reportConditions(signal: AbortSignal): Promise<void> {
    const linked = linkedClusters(configurations.list());
    const exposed = ips.get({ namespace, name: ipType.apiServerProxy });
    for (const tenant of tenants.list()) {
      const { clusterID } = tenant.spec;
      const [user] = proxyUsers([tenant], linked);
      const isHere = doorOf(tenant) !== undefined || leadsHere(tenant.spec.proxyURL, exposed);
      const isWelcome = user?.isInBand === true && isHere;
      const byAddress = needsNoToken(tenant);
      const before = welcome.get(clusterID);
      if (!isWelcome) for (const known of [welcome, withToken, fromLink]) known.delete(clusterID);
      else if (before?.byAddress !== byAddress) {
        welcome.set(clusterID, { since: clock.now(), byAddress });
        fromLink.delete(clusterID);
      }
      const since = welcome.get(clusterID)?.since;
      const hasCome = withToken.has(clusterID) || fromLink.has(clusterID);
      const known = since === undefined ? undefined : { welcomeSince: since, hasCome, tokenless };
      const ranges = byAddress ? linkRanges(tenant, configurations.list()) : undefined;
      const conditions = tokenConditions(tenant, isWelcome, known, clock.now(), ranges);
      const reported = conditions.find(({ type }) => type === tenantConditionType.inBandToken);
      const isNew =
        reported?.status === 'False' &&
        !tenant.status?.conditions?.some(({ type, reason }) => type === reported.type && reason === reported.reason);
      const { conditions: _, ...status } = tenant.status ?? {};
      const wanted = conditions.length > 0 ? { ...status, conditions: [...conditions] } : status;
      if (tenant.status === undefined || !(await writeStatus(api, tenantKind, tenant, wanted, signal))) continue;
      if (isNew) cluster.events.emit(tenant, 'Warning', 'NoProxyToken', reported.message);
    }
  }

  async function listen(): Promise<ApiProxy> {
    for (const known of [welcome, withToken, fromLink]) known.clear();
    tokenless = undefined;
    const nonce = Buffer.from(ids.bytes(18)).toString('base64url');
    const authorizer = new ProxyAuthorizer({
      clusterId,
      targets,
      nonce,
      clock,
      keysOf,
      consumerAt: linkedConsumerAt,
      onEvidence: recordEvidence,
    });
    const { upstream, port = networkPort.apiServerProxy, host } = deps;
    const opened = await startApiProxy({
      authorizer,
      nonce,
      credentialFor,
      upstream,
      port,
      ...(host !== undefined && { host }),
      clock,
      log: log.with({ part: 'api-proxy' }),
    });
    log.info('proxy to the API server opened', { port: opened.port });
    return opened;
  }

  async function close(): Promise<void> {
    const was = proxy;
    proxy = undefined;
    if (was === undefined) return;
    await was.close();
    log.info('proxy to the API server closed');
  }

  async function ensure<T extends KubeObject>(
    type: ResourceType<T>,
    actual: T | undefined,
    wanted: Applied<T>,
    signal: AbortSignal,
  ) {
    if (!covers(actual, wanted)) await api.apply(type, wanted, { fieldManager: fieldManager.agent }, signal);
  }

  async function reconcile(_key: string, signal: AbortSignal): Promise<Outcome> {
    const users = proxyUsers(tenants.list(), linkedClusters(configurations.list()));
    const open = tenants.list().filter(needsNoToken);
    proxy?.retain(
      (consumer, byAddress) =>
        users.some((user) => user.consumer === consumer && user.isInBand) &&
        (!byAddress || open.some(({ spec }) => spec.clusterID === consumer)),
    );
    if (users.length === 0) await close();
    else proxy ??= await listen();
    const doorPort = await door.ensure(signal);
    await reportConditions(signal);
    // Without a network no consumer can reach the proxy.
    if (networkOfType(networks.list(), networkType.external) === undefined) return settled;
    const service = serviceCache.get(serviceRef);
    await ensure(services, service, buildProxyService(namespace), signal);
    const slice = sliceCache.get(serviceRef);
    if (proxy !== undefined) {
      const wanted = buildProxyEndpoints(namespace, { ip: podIp, port: proxy.port, doorPort });
      await ensure(endpointSlices, slice, wanted, signal);
    } else if (slice !== undefined) await deleteObject(api, endpointSlices, slice, signal);
    const clusterIp = service?.spec?.clusterIP;
    if (clusterIp === undefined) return again(1_000);
    const exposed = {
      name: ipType.apiServerProxy,
      namespace,
      ipType: ipType.apiServerProxy,
      clusterIp,
      ...(nodeName !== undefined && { servedBy: nodeName }),
    };
    const outcome = await ensureExposedService(cluster, ips, exposed, signal);
    // Its certificate ends some day.
    return doorPort !== undefined && outcome === settled ? again(doorCheckMs) : outcome;
  }

  const mine = (name: string) => (object: KubeObject) =>
    object.metadata.namespace === namespace && object.metadata.name === name ? [key] : [];
  const controller = createController(
    {
      name: 'api-server-proxy',
      watches: [
        watch(tenants, () => [key]),
        watch(secrets, (secret) => (secret.metadata.labels?.[isthmusLabel.credentialOf] === undefined ? [] : [key])),
        watch(serviceCache, mine(proxyServiceName)),
        watch(sliceCache, mine(proxyServiceName)),
        watch(ips, mine(ipType.apiServerProxy)),
        watch(networks, () => [key]),
        watch(configurations, () => [key]),
      ],
      workers: 1,
      reconcile,
    },
    deps,
  );
  return {
    ...controller,
    async run(signal) {
      try {
        await controller.run(signal);
      } finally {
        // The next leader opens its own listener.
        await Promise.all([close(), door.close()]);
      }
    },
  };
}
