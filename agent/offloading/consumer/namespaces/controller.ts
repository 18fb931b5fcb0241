/** Consumer side: makes the NamespaceMaps, the namespace's label and the status follow each NamespaceOffloading. */
import type { Cluster, Controller } from '#kube/model/types.ts';
import { type ControllerDeps, createController, watch } from '#kube/run/controller.ts';
import { namespaces, nodes } from '#shared/domain/core-kinds.ts';
import { type Node, refOf } from '#shared/domain/kube-object.ts';
import { label, namespaceOffloadingName, virtualNodeType } from '#shared/domain/liqo-keys.ts';
import { again, type Outcome, settled, waiting } from '#shared/domain/outcome.ts';
import { foreignClusters } from '#shared/schema/liqo/foreign-cluster.ts';
import { type NamespaceMap, namespaceMaps } from '#shared/schema/liqo/namespace-map.ts';
import { namespaceOffloadings } from '#shared/schema/liqo/namespace-offloading.ts';
import { virtualNodes } from '#shared/schema/liqo/virtual-node.ts';
import { apply } from './apply.ts';
import { type Decision, decide, type Observed } from './decide.ts';
import { evictAll, held, isTightening, listPods, planDrain, wantsDrain } from './drain.ts';
import { isOwnMap, type OffloadingCaches, observe } from './observe.ts';

export interface OffloadingDeps extends ControllerDeps {
  readonly cluster: Cluster;
  readonly clusterId: string;
}

const waitMs = 60_000;
const staleMs = 100;
const drainMs = 1_000;

/** Selectors look at nothing but name and labels; the cache itself needs UID and version. */
const labelsOnly = ({ apiVersion, kind, metadata: { name, uid, resourceVersion, labels } }: Node): Node => ({
  apiVersion,
  kind,
  metadata: { name, ...(uid && { uid }), ...(resourceVersion && { resourceVersion }), ...(labels && { labels }) },
});

export function createNamespaceOffloadingController(deps: OffloadingDeps): Controller {
  const { cluster, clusterId, clock } = deps;
  const caches: OffloadingCaches = {
    offloadings: cluster.caches.cache(namespaceOffloadings),
    maps: cluster.caches.cache(namespaceMaps),
    virtualNodes: cluster.caches.cache(virtualNodes),
    nodes: cluster.caches.cache(nodes, { labelSelector: `${label.type}=${virtualNodeType}`, transform: labelsOnly }),
    namespaces: cluster.caches.cache(namespaces),
    foreignClusters: cluster.caches.cache(foreignClusters),
  };
  const offloaded = (): string[] => caches.offloadings.list().map(({ metadata }) => metadata.namespace ?? '');

  const reconcile = async (namespace: string, signal: AbortSignal): Promise<Outcome> => {
    const cached = observe(caches, caches.maps.list(), namespace, clusterId, clock.now());
    if (!cached) return dropOrphans(cluster, caches, namespace, signal);
    const { observed, decision } = await confirmed(cached, namespace, signal);
    if (decision.problem) {
      cluster.events.emit(observed.offloading, 'Warning', decision.problem.reason, decision.problem.message);
    }
    if (wantsDrain(observed.offloading) && isTightening(observed, decision)) {
      return drain(observed, decision, signal);
    }
    await apply(cluster.api, observed.offloading, decision, signal);
    return decision.waitingOn === undefined ? settled : waiting(decision.waitingOn, waitMs);
  };

  /** The new policy holds for new pods first, then those that it does not allow where they are go, then their mappings. */
  const drain = async (observed: Observed, decision: Decision, signal: AbortSignal): Promise<Outcome> => {
    const { offloading } = observed;
    const plan = planDrain(observed, await listPods(cluster.api, offloading.metadata.namespace ?? '', signal));
    await apply(cluster.api, offloading, held(decision, observed, plan), signal);
    if (plan.left === 0) return decision.waitingOn === undefined ? settled : waiting(decision.waitingOn, waitMs);
    const blocked = await evictAll(plan, cluster.api, signal);
    if (blocked !== undefined) cluster.events.emit(offloading, 'Warning', 'DrainBlocked', blocked);
    return waiting(blocked ?? `${plan.left} pods to leave nodes that the policy no longer allows`, drainMs);
  };

  /** Before the finalizer goes, the maps are read from the API server: with cache lag, the cache may not show our last write. */
  const confirmed = async (observed: Observed, namespace: string, signal: AbortSignal) => {
    const decision = decide(observed);
    if (decision.finalizer !== 'remove') return { observed, decision };
    const maps = await cluster.api.list(namespaceMaps, { labelSelector: `${label.replication}=true` }, signal);
    const fresh = observe(caches, maps, namespace, clusterId, clock.now()) ?? observed;
    return { observed: fresh, decision: decide(fresh) };
  };

  return createController(
    {
      name: 'namespace-offloading',
      watches: [
        // Another offloading may hold, or just have given up, the remote name that this one wants.
        watch(caches.offloadings, ({ metadata }) =>
          metadata.name === namespaceOffloadingName ? new Set([metadata.namespace ?? '', ...offloaded()]) : [],
        ),
        watch(caches.maps, (map) => (isOwnMap(map) ? new Set([...offloaded(), ...mapped(map)]) : [])),
        watch(caches.virtualNodes, offloaded),
        watch(caches.nodes, offloaded),
        watch(caches.foreignClusters, offloaded),
        watch(caches.namespaces, ({ metadata }) => [metadata.name]),
      ],
      reconcile,
    },
    deps,
  );
}

const mapped = (map: NamespaceMap): string[] => Object.keys(map.spec?.desiredMapping ?? {});

/** Takes out mappings of a namespace whose NamespaceOffloading was removed past its finalizer. */
async function dropOrphans({ api }: Cluster, caches: OffloadingCaches, namespace: string, signal: AbortSignal) {
  const orphaned = caches.maps
    .list()
    .filter((map) => isOwnMap(map) && !map.metadata.deletionTimestamp && mapped(map).includes(namespace));
  if (orphaned.length === 0) return settled;
  if (await api.get(namespaceOffloadings, { namespace, name: namespaceOffloadingName }, signal)) return again(staleMs);
  for (const map of orphaned) {
    await api.mergePatch(namespaceMaps, refOf(map), { spec: { desiredMapping: { [namespace]: null } } }, {}, signal);
  }
  return settled;
}
