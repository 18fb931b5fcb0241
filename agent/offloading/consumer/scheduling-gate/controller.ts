/** Consumer side: lets pods go that wait behind our scheduling gate, as soon as a provider has their namespace. */
import type { Cluster, Controller } from '#kube/model/types.ts';
import { type ControllerDeps, createController, watch } from '#kube/run/controller.ts';
import { pods } from '#shared/domain/core-kinds.ts';
import { keyOf, type Pod, refOf, refOfKey } from '#shared/domain/kube-object.ts';
import { isthmusLabel, namespaceOffloadingName } from '#shared/domain/liqo-keys.ts';
import { again, settled, waiting } from '#shared/domain/outcome.ts';
import { codeOf } from '#shared/errors/app-error.ts';
import { namespaceOffloadings } from '#shared/schema/liqo/namespace-offloading.ts';
import { isGated, releasePatch, waitsFor } from './decide.ts';

export interface SchedulingGateDeps extends ControllerDeps {
  readonly cluster: Cluster;
}

const byNamespace = { namespace: ({ metadata }: Pod): readonly string[] => [metadata.namespace ?? ''] };
const waitMs = 60_000;
const staleMs = 100;

/** Waiting pods may be many, and only their gates are read. */
const gatesOnly = ({ apiVersion, kind, metadata, spec }: Pod): Pod => {
  const { name, namespace, uid, resourceVersion, labels } = metadata;
  const mark = labels?.[isthmusLabel.gated];
  return {
    apiVersion,
    kind,
    metadata: {
      name,
      ...(namespace !== undefined && { namespace }),
      ...(uid !== undefined && { uid }),
      ...(resourceVersion !== undefined && { resourceVersion }),
      ...(mark !== undefined && { labels: { [isthmusLabel.gated]: mark } }),
    },
    spec: { schedulingGates: spec?.schedulingGates ?? [] } as unknown as NonNullable<Pod['spec']>,
  };
};

export function createSchedulingGateController(deps: SchedulingGateDeps): Controller {
  const { api, caches, events } = deps.cluster;
  const gated = caches.cache(pods, { labelSelector: isthmusLabel.gated, transform: gatesOnly, indexes: byNamespace });
  const offloadings = caches.cache(namespaceOffloadings);
  return createController(
    {
      name: 'scheduling-gate',
      workers: 8,
      watches: [
        watch(gated, (pod) => [keyOf(pod)]),
        watch(offloadings, ({ metadata }) => gated.byIndex('namespace', metadata.namespace ?? '').map(keyOf)),
      ],
      async reconcile(key, signal) {
        const pod = gated.get(refOfKey(key));
        if (!pod) return settled;
        const where = { namespace: pod.metadata.namespace ?? '', name: namespaceOffloadingName };
        // The pod may have been admitted by an offloading that the cache does not show yet.
        const offloading = offloadings.get(where) ?? (await api.get(namespaceOffloadings, where, signal));
        const why = isGated(pod) ? waitsFor(offloading) : undefined;
        if (why !== undefined) {
          events.emit(pod, 'Normal', 'WaitingForOffloading', why);
          return waiting(why, waitMs);
        }
        const patch = releasePatch(pod);
        if (patch.length === 0) return settled;
        try {
          await api.jsonPatch(pods, refOf(pod), patch, { answer: 'metadata' }, signal);
        } catch (error) {
          const code = codeOf(error);
          if (code === 'kube_not_found') return settled;
          // Its gates are others than the cache says.
          if (code === 'kube_invalid' || code === 'kube_conflict') return again(staleMs);
          throw error;
        }
        return settled;
      },
    },
    deps,
  );
}
