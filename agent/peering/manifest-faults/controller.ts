/** Checks the namespaces of peerings and reports, as Events, what is wrong in the manifests there. */
import { peerSecrets, remoteClusterRoles } from '#agent/model/peering-selections.ts';
import { isReplica } from '#agent/model/slice-roles.ts';
import type { Cache, Controller } from '#kube/model/types.ts';
import { createController, watch } from '#kube/run/controller.ts';
import { namespaces, roleBindings, secrets } from '#shared/domain/core-kinds.ts';
import type { KubeObject } from '#shared/domain/kube-object.ts';
import { label } from '#shared/domain/liqo-keys.ts';
import { again, settled } from '#shared/domain/outcome.ts';
import { networkKinds } from '#shared/schema/liqo/network-resources.ts';
import { resourceSlices } from '#shared/schema/liqo/resource-slice.ts';
import { tenants } from '#shared/schema/liqo/tenant.ts';
import type { PeeringDeps } from '../model/deps.ts';
import { type Fault, faultsOf, isIncomplete, type NamedKeys, type NamespaceFacts } from './decide.ts';

/** Debounce: manifests are applied one by one, so a fault counts only once it has lasted. */
const patienceMs = 2_000;
const lookAgainMs = 2_000;
/** Interval once no change has come for a while. */
const seldomMs = 30_000;
const attentionMs = 10 * 60_000;

export function createManifestFaultsController({ cluster, clusterId, clock, log }: PeeringDeps): Controller {
  const { api, caches, events } = cluster;
  const namespaceCache = caches.cache(namespaces, { labelSelector: label.remoteClusterId });
  const markedCache = caches.cache(namespaces, { labelSelector: label.tenantNamespace });
  const roleCache = remoteClusterRoles(caches);
  const keyCache = caches.cache(networkKinds.publicKeys);
  const tenantCache = caches.cache(tenants);
  const sliceCache = caches.cache(resourceSlices);
  const configurationCache = caches.cache(networkKinds.configurations);
  const gatewayCaches = [
    caches.cache(networkKinds.gatewayServers),
    caches.cache(networkKinds.gatewayClients),
  ] as unknown as readonly Cache<NamedKeys>[];
  /** Namespace to its faults, each with when it was first seen and whether it was reported. */
  const known = new Map<string, Map<string, { readonly since: number; said: boolean }>>();
  const unfinishedSince = new Map<string, number>();

  async function observe(name: string, signal: AbortSignal): Promise<NamespaceFacts | undefined> {
    const namespace =
      markedCache.get({ name }) ?? namespaceCache.get({ name }) ?? (await api.get(namespaces, { name }, signal));
    if (namespace === undefined || namespace.metadata.deletionTimestamp !== undefined) return undefined;
    const here = <T extends KubeObject>(cache: Cache<T>): T[] =>
      cache.list().filter(({ metadata }) => metadata.namespace === name && metadata.deletionTimestamp === undefined);
    const facts = {
      clusterId,
      namespace,
      publicKeys: here(keyCache),
      gateways: gatewayCaches.flatMap(here),
      tenants: here(tenantCache),
      others: [...here(sliceCache).filter((slice) => !isReplica(slice)), ...here(configurationCache)],
      remoteRoles: roleCache.list(),
    };
    const isTenants = namespace.metadata.labels?.[label.tenantNamespace] !== undefined;
    // Unlabelled ones are what this is about, so no cache has them.
    const [found, bindings] = isTenants
      ? await Promise.all([
          api.list(secrets, { namespace: name }, signal),
          api.list(roleBindings, { namespace: name }, signal),
        ])
      : [[], []];
    return { ...facts, secrets: found, bindings };
  }

  /** Emits what has lasted; true when something still has to. */
  function say(name: string, faults: readonly Fault[]): boolean {
    const before = known.get(name);
    const now = new Map<string, { readonly since: number; said: boolean }>();
    for (const { object, reason, message } of faults) {
      const key = `${object.metadata.uid} ${reason} ${message}`;
      const entry = before?.get(key) ?? { since: clock.now(), said: false };
      now.set(key, entry);
      if (entry.said || clock.now() - entry.since < patienceMs) continue;
      events.emit(object, 'Warning', reason, message);
      entry.said = true;
    }
    if (now.size > 0) known.set(name, now);
    else known.delete(name);
    return [...now.values()].some(({ said }) => !said);
  }

  const inNamespace = ({ metadata }: KubeObject): string[] => (metadata.namespace ? [metadata.namespace] : []);
  const itself = ({ metadata }: KubeObject): string[] => [metadata.name];
  return createController(
    {
      name: 'manifest-faults',
      workers: 1,
      watches: [
        watch(markedCache, itself),
        watch(namespaceCache, itself),
        ...[keyCache, tenantCache, sliceCache, configurationCache].map((cache) =>
          watch(cache as unknown as Cache<KubeObject>, inNamespace),
        ),
        ...gatewayCaches.map((cache) => watch(cache, inNamespace)),
        watch(peerSecrets(caches), inNamespace),
      ],
      async reconcile(name, signal) {
        const facts = await observe(name, signal);
        if (facts === undefined) {
          known.delete(name);
          unfinishedSince.delete(name);
          return settled;
        }
        const faults = faultsOf(facts);
        const isUnsaid = say(name, faults);
        if (!isUnsaid && faults.length === 0 && !isIncomplete(facts)) {
          unfinishedSince.delete(name);
          return settled;
        }
        const since = unfinishedSince.get(name) ?? clock.now();
        unfinishedSince.set(name, since);
        return again(clock.now() - since < attentionMs ? lookAgainMs : seldomMs);
      },
    },
    { clock, log },
  );
}
