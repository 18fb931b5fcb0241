/** Consumer: credentials that the provider granted to a slice become the Identity of that slice. */
import { conditionOf, isOriginal, providerOf } from '#agent/model/slice-roles.ts';
import type { Controller } from '#kube/model/types.ts';
import { createController, watch } from '#kube/run/controller.ts';
import { ownerName } from '#kube/writes/owner-references.ts';
import { applyWanted, deleteObject } from '#kube/writes/write-if-changed.ts';
import { keyOf, type ObjectRef, refOfKey } from '#shared/domain/kube-object.ts';
import { name } from '#shared/domain/liqo-keys.ts';
import { settled } from '#shared/domain/outcome.ts';
import { type Identity, identities } from '#shared/schema/liqo/identity.ts';
import { resourceSlices } from '#shared/schema/liqo/resource-slice.ts';
import type { PeeringDeps } from '../model/deps.ts';
import { buildSliceIdentity } from './objects.ts';

const sliceKeys = (identity: Identity): string[] => {
  const owner = ownerName(resourceSlices, identity);
  return owner === undefined ? [] : [`${identity.metadata.namespace}/${owner}`];
};

export function createSliceIdentityController({ cluster, clock, log }: PeeringDeps): Controller {
  const { api, caches } = cluster;
  const cache = caches.cache(resourceSlices);
  const identityCache = caches.cache(identities);

  async function remove(slice: ObjectRef, signal: AbortSignal): Promise<void> {
    const { namespace = '' } = slice;
    const identity = identityCache.get({ namespace, name: name.sliceIdentity(slice.name) });
    if (identity === undefined || ownerName(resourceSlices, identity) !== slice.name) return;
    if (identity.metadata.deletionTimestamp === undefined) await deleteObject(api, identities, identity, signal);
  }

  return createController(
    {
      name: 'slice-identity',
      watches: [watch(cache, (slice) => (isOriginal(slice) ? [keyOf(slice)] : [])), watch(identityCache, sliceKeys)],
      async reconcile(key, signal) {
        const ref = refOfKey(key);
        const slice = cache.get(ref);
        if (slice === undefined) {
          if ((await api.get(resourceSlices, ref, signal)) === undefined) await remove(ref, signal);
          return settled;
        }
        const provider = providerOf(slice);
        // While the slice goes, its virtual node still needs the credentials to drain.
        if (!isOriginal(slice) || provider === undefined || slice.metadata.deletionTimestamp !== undefined)
          return settled;
        const verdict = conditionOf(slice, 'Authentication');
        if (verdict?.status === 'Denied') await remove(ref, signal);
        const authParams = slice.status?.authParams;
        if (verdict?.status !== 'Accepted' || authParams === undefined) return settled;
        const wanted = buildSliceIdentity(slice, provider, authParams);
        const current = identityCache.get({ namespace: ref.namespace ?? '', name: wanted.metadata.name });
        await applyWanted(api, identities, current, wanted, ({ spec }) => spec, signal);
        return settled;
      },
    },
    { clock, log },
  );
}
