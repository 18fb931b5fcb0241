/** Configurations: asks for a range here for every range of the peer, and says which it got. */
import { rangeIps } from '#agent/model/network-selections.ts';
import { peerOf, tenantNamespaces } from '#agent/model/peering-selections.ts';
import { linkRefusal } from '#agent/model/policies.ts';
import { placementOf } from '#agent/model/tenant-namespaces.ts';
import { createReportWait } from '#agent/runtime/wait-events.ts';
import type { Controller } from '#kube/model/types.ts';
import { createController, watch } from '#kube/run/controller.ts';
import { findCondition } from '#kube/writes/conditions.ts';
import { ensureOwned } from '#kube/writes/owned-object.ts';
import { isOwnedBy, ownerName, ownerOf } from '#kube/writes/owner-references.ts';
import { deleteObject, writeStatus } from '#kube/writes/write-if-changed.ts';
import { sameJson } from '#shared/domain/json-equality.ts';
import { type KubeObject, keyOf, refOf, refOfKey } from '#shared/domain/kube-object.ts';
import { networkLabel, networkName } from '#shared/domain/network-keys.ts';
import { again, type Outcome, settled, stalled, waiting } from '#shared/domain/outcome.ts';
import { peeringPolicies } from '#shared/schema/isthmus/peering-policy.ts';
import type { Configuration } from '#shared/schema/liqo/configuration.ts';
import { networkKinds } from '#shared/schema/liqo/network-resources.ts';
import type { NetworkDeps } from '../../model/deps.ts';
import {
  buildRemoteNetwork,
  buildUnknownSource,
  configurationStatus,
  localConfig,
  namedRanges,
  peerRangesCondition,
  planNetworks,
  rangesDiffer,
  refusedRange,
  type Verdict,
  verdictOf,
} from './decide.ts';

const retryMs = 60_000;

export function createConfigurationController(deps: NetworkDeps): Controller {
  const { cluster, clock } = deps;
  const { api, caches, events } = cluster;
  const type = networkKinds.configurations;
  const { networks, ips } = networkKinds;
  const cache = caches.cache(type);
  const networkCache = caches.cache(networks);
  const ipCache = rangeIps(caches);
  const connections = caches.cache(networkKinds.connections);
  const policies = caches.cache(peeringPolicies);
  const namespaces = tenantNamespaces(caches);
  const reportWait = createReportWait(events, clock);

  async function reconcile(key: string, signal: AbortSignal): Promise<Outcome> {
    const found = cache.get(refOfKey(key));
    // Its Networks and its IP are collected with it.
    if (found === undefined || found.metadata.deletionTimestamp !== undefined) return settled;
    const placement = placementOf(found, peerOf(found), namespaces.list());
    if ('outcome' in placement) {
      const { outcome } = placement;
      if (outcome.kind === 'stalled') await report(found, outcome, signal);
      return reportWait(found, outcome);
    }
    const configuration = await followLocal(found, signal);
    const named = namedRanges(policies.list(), placement.peer);
    const refused = refusedRange(configuration, named);
    if (refused !== undefined) {
      await report(configuration, { reason: 'RangeRefused', message: refused }, signal);
      return reportWait(configuration, stalled('RangeRefused', refused));
    }
    const { pod = [], external = [] } = configuration.spec.remote.cidr;
    const forbidden = linkRefusal(policies.list(), placement.peer, [...pod, ...external]);
    if (forbidden !== undefined) {
      // Ranges that were granted under a former policy are given back: nothing is routed to them any more.
      for (const network of childrenOf(configuration))
        if (network.metadata.deletionTimestamp === undefined) await deleteObject(api, networks, network, signal);
      await report(configuration, { reason: 'PolicyRefused', message: forbidden }, signal);
      return reportWait(configuration, stalled('PolicyRefused', forbidden));
    }
    const isClear = await ensureNetworks(configuration, placement.peer, named, signal);
    const verdict = verdictOf(configuration, childrenOf(configuration));
    const written = await report(configuration, verdict, signal);
    if (!isClear) return again(1_000);
    if (verdict.remote === undefined) {
      const { reason, message } = verdict;
      return reportWait(
        configuration,
        reason === 'WaitingForNetworks' ? waiting('its Networks', retryMs) : stalled(reason, message),
      );
    }
    await ensureUnknownSource(configuration, verdict.remote.cidr.external[0], placement.peer, signal);
    const differ = differOf(configuration);
    if (differ !== undefined) return reportWait(configuration, stalled('RangesDiffer', differ));
    return written ? settled : reportWait(configuration, settled);
  }

  const childrenOf = (configuration: Configuration) =>
    networkCache
      .list()
      .filter((one) => one.metadata.namespace === configuration.metadata.namespace && isOwnedBy(one, configuration));

  const report = (configuration: Configuration, verdict: Verdict, signal: AbortSignal): Promise<boolean> =>
    writeStatus(
      api,
      type,
      configuration,
      configurationStatus(configuration, verdict, clock.now(), differOf(configuration)),
      signal,
    );

  const sameLink = (a: KubeObject, b: KubeObject): boolean =>
    a.metadata.namespace === b.metadata.namespace && peerOf(a) === peerOf(b);
  const saidOf = ({ status }: Configuration): string | undefined =>
    findCondition(status?.conditions, peerRangesCondition)?.message;
  function differOf(configuration: Configuration): string | undefined {
    const said = connections.list().filter((one) => sameLink(one, configuration));
    return rangesDiffer(configuration, said.find(({ status }) => status?.peerRanges !== undefined)?.status?.peerRanges);
  }

  /** Liqo fills this in once; here it follows. */
  async function followLocal(configuration: Configuration, signal: AbortSignal): Promise<Configuration> {
    const local = localConfig(networkCache.list());
    if (local === undefined || sameJson(configuration.spec.local, local)) return configuration;
    return api.mergePatch(type, refOf(configuration), { spec: { local } }, {}, signal);
  }

  /** False while something stands in the way that will go by itself. */
  async function ensureNetworks(
    configuration: Configuration,
    peer: string,
    named: ReadonlySet<string>,
    signal: AbortSignal,
  ): Promise<boolean> {
    const { remove, create } = planNetworks(configuration, childrenOf(configuration));
    for (const network of remove) await deleteObject(api, networks, network, signal);
    let isClear = remove.length === 0;
    for (const range of create) {
      const owner = ownerOf(type, configuration);
      const wanted = buildRemoteNetwork(configuration, range, peer, owner, named.has(range.cidr));
      const actual = networkCache.get({ namespace: wanted.metadata.namespace ?? '', name: wanted.metadata.name });
      if ((await ensureOwned(api, networks, actual, wanted, signal)) !== 'done') isClear = false;
    }
    return isClear;
  }

  async function ensureUnknownSource(
    configuration: Configuration,
    view: string | undefined,
    peer: string,
    signal: AbortSignal,
  ): Promise<void> {
    const wanted = buildUnknownSource(configuration, view, peer, ownerOf(type, configuration));
    const name = networkName.unknownSource(configuration.metadata.name);
    const actual = ipCache.get({ namespace: configuration.metadata.namespace ?? '', name });
    if (actual?.metadata.deletionTimestamp !== undefined) return;
    // The address of an IP cannot be changed: the next pass, when it is gone, makes another.
    const isOutdated = actual !== undefined && isOwnedBy(actual, configuration) && actual.spec.ip !== wanted?.spec?.ip;
    if (isOutdated) await deleteObject(api, ips, actual, signal);
    else if (wanted !== undefined) await ensureOwned(api, ips, actual, wanted, signal);
  }

  const owning = (object: Parameters<typeof ownerName>[1]): string[] => {
    const name = ownerName(type, object);
    return name === undefined ? [] : [`${object.metadata.namespace}/${name}`];
  };
  return createController(
    {
      name: 'configuration',
      watches: [
        watch(cache, (one) => [keyOf(one)]),
        watch(networkCache, (network) =>
          network.metadata.labels?.[networkLabel.networkType] ? cache.list().map(keyOf) : owning(network),
        ),
        watch(ipCache, owning),
        watch(policies, () => cache.list().map(keyOf)),
        // Figures of a link are written all the time; what it tells of ranges changes once in its life.
        watch(connections, (connection) =>
          cache
            .list()
            .filter((one) => sameLink(one, connection) && differOf(one) !== saidOf(one))
            .map(keyOf),
        ),
        watch(namespaces, (namespace) =>
          cache
            .list()
            .filter((one) => one.metadata.namespace === namespace.metadata.name)
            .map(keyOf),
        ),
      ],
      reconcile,
    },
    deps,
  );
}
