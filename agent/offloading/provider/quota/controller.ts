/** Provider: what a slice was granted becomes the Quota that admission holds its pods to. */
import { tenantNamespaces } from '#agent/model/peering-selections.ts';
import { isAccepted, isCordoned, isReplica } from '#agent/model/slice-roles.ts';
import { peerOfNamespace } from '#agent/model/tenant-namespaces.ts';
import type { PeeringDeps } from '#agent/peering/model/deps.ts';
import { createReportWait } from '#agent/runtime/wait-events.ts';
import type { Controller } from '#kube/model/types.ts';
import { createController, watch } from '#kube/run/controller.ts';
import { ownerName } from '#kube/writes/owner-references.ts';
import { applyWanted, deleteObject } from '#kube/writes/write-if-changed.ts';
import { keyOf, type ObjectRef, refOfKey } from '#shared/domain/kube-object.ts';
import { label } from '#shared/domain/liqo-keys.ts';
import { settled, waiting } from '#shared/domain/outcome.ts';
import type { ResourceList } from '#shared/schema/definition/fields.ts';
import { type Quota, quotas } from '#shared/schema/liqo/quota.ts';
import { type ResourceSlice, resourceSlices } from '#shared/schema/liqo/resource-slice.ts';
import { createRulebook } from '../guests/rulebook.ts';
import { buildQuota } from './object.ts';

export interface QuotaDecision {
  readonly resources: ResourceList;
  readonly cordoned: boolean;
}

/**
 * Undefined: no quota. A slice that was accepted and is denied now keeps what runs, within the old grant, and gets nothing new.
 */
export function decideQuota(slice: ResourceSlice, current: Quota | undefined): QuotaDecision | undefined {
  const granted = slice.status?.resources;
  if (isAccepted(slice, 'Resources') && granted !== undefined)
    return { resources: granted, cordoned: isCordoned(slice) };
  return current === undefined ? undefined : { resources: current.spec.resources, cordoned: true };
}

/** By its label where it has lost its owner: a deletion may ask for dependents to stay, and a Quota that stays would grant for ever. */
const sliceOf = (quota: Quota): string | undefined =>
  ownerName(resourceSlices, quota) ??
  (quota.metadata.labels?.[label.managed] === 'true' ? quota.metadata.labels[label.resourceSliceName] : undefined);

const sliceKeys = (quota: Quota): string[] => {
  const slice = sliceOf(quota);
  return slice === undefined ? [] : [`${quota.metadata.namespace}/${slice}`];
};

export function createQuotaController({ cluster, clock, log }: PeeringDeps): Controller {
  const { api, caches, events } = cluster;
  const cache = caches.cache(resourceSlices);
  const quotaCache = caches.cache(quotas);
  const namespaces = tenantNamespaces(caches);
  const explain = createReportWait(events, clock);
  const rulebook = createRulebook(caches);

  const quotaOf = (slice: ObjectRef): Quota | undefined =>
    quotaCache.list().find((quota) => quota.metadata.namespace === slice.namespace && sliceOf(quota) === slice.name);

  return createController(
    {
      name: 'quota',
      watches: [
        watch(cache, (slice) => (isReplica(slice) ? [keyOf(slice)] : [])),
        watch(quotaCache, sliceKeys),
        watch(rulebook.policies, () => cache.list().filter(isReplica).map(keyOf)),
        watch(namespaces, (namespace) =>
          cache
            .list()
            .filter((slice) => slice.metadata.namespace === namespace.metadata.name)
            .map(keyOf),
        ),
      ],
      async reconcile(key, signal) {
        const ref = refOfKey(key);
        const slice = cache.get(ref);
        const current = quotaOf(ref);
        if (slice === undefined) {
          const isGone = current !== undefined && (await api.get(resourceSlices, ref, signal)) === undefined;
          if (isGone) await deleteObject(api, quotas, current, signal);
          return settled;
        }
        if (!isReplica(slice) || slice.metadata.deletionTimestamp !== undefined) return settled;
        const decision = decideQuota(slice, current);
        if (decision === undefined) return settled;
        const consumer = peerOfNamespace(namespaces.list(), ref.namespace);
        if (consumer === undefined)
          return explain(slice, waiting(`the labels of tenant namespace ${ref.namespace}`, 30_000));
        await applyWanted(
          api,
          quotas,
          current,
          buildQuota(slice, { consumer, limitsEnforcement: rulebook.rulesOf(consumer).limitsEnforcement, ...decision }),
          ({ spec }) => spec,
          signal,
        );
        return explain(slice, settled);
      },
    },
    { clock, log },
  );
}
