/**
 * Hooks for claims in namespaces of consumers: what may be asked for, and the quota at creation and growth; and those for VolumeSnapshots there. Claims of
 * users of the provider are not judged, but count.
 */
import type { Hook } from '#agent/admission/hook.ts';
import { allow, type Review, type Verdict } from '#agent/admission/review.ts';
import { validateFinalizers } from '#agent/peering/admission/finalizers.ts';
import { offeredClasses } from '#agent/peering/slices/storage-offer.ts';
import type { Cluster } from '#kube/model/types.ts';
import { type PersistentVolumeClaim, storageClasses } from '#shared/domain/core-kinds.ts';
import { guestVolume } from '#shared/domain/guest-volume-keys.ts';
import type { Namespace } from '#shared/domain/kube-object.ts';
import { unreachable } from '#shared/domain/unreachable.ts';
import type { Clock } from '#shared/ports/clock.ts';
import { createRulebook } from '../guests/rulebook.ts';
import { guestsOf } from '../model/guest-namespace.ts';
import { demandOf } from '../storage/demand.ts';
import { type GuestSource, type Named, namedSource, validateSource } from './claim-source.ts';
import { guestClaimPatch, validateGuestClaim } from './guest-claim.ts';
import { readClaimSource, readSnapshotSource } from './guest-source.ts';
import { createSnapshotHooks } from './snapshot-hooks.ts';
import { createStorageUsage, isMore } from './storage-usage.ts';

export interface ClaimHookDeps {
  readonly cluster: Cluster;
  readonly clock: Clock;
  readonly namespaceOf: (name: string, signal: AbortSignal) => Promise<Namespace | undefined>;
}

/** Made by the cluster for a generic ephemeral volume: the guest wrote its template. */
const isOfPod = ({ metadata }: PersistentVolumeClaim): boolean =>
  metadata.ownerReferences?.some(({ kind, controller }) => kind === 'Pod' && controller) ?? false;

export function createClaimHooks({ cluster, clock, namespaceOf }: ClaimHookDeps) {
  const { api } = cluster;
  const rulebook = createRulebook(cluster.caches);
  const classes = cluster.caches.cache(storageClasses);
  const usage = createStorageUsage(cluster, clock, rulebook);

  const consumerOf = async (namespace: string, signal: AbortSignal): Promise<string | undefined> =>
    guestsOf(await namespaceOf(namespace, signal));
  async function validateOrigin(
    object: PersistentVolumeClaim,
    namespace: string,
    consumer: string,
    signal: AbortSignal,
  ): Promise<Verdict> {
    const named = namedSource(object);
    if (named === undefined) return allow;
    const found = await readNamed(named, namespace, signal);
    return validateSource(object, named, found, consumer, classes.list());
  }

  async function readNamed(named: Named, namespace: string, signal: AbortSignal): Promise<GuestSource> {
    switch (named.kind) {
      case 'claim':
        return readClaimSource(api, { namespace, name: named.name }, signal);
      case 'snapshot':
        return readSnapshotSource(api, { namespace, name: named.name }, signal);
      case 'other':
        return {};
      default:
        return unreachable(named);
    }
  }

  const mutate: Hook = async (review, signal) => {
    const { object, namespace } = review as Review<PersistentVolumeClaim>;
    const consumer = object && (await consumerOf(namespace, signal));
    return object && consumer !== undefined ? { allowed: true, patch: guestClaimPatch(object, consumer) } : allow;
  };

  const validate: Hook = async (review, signal) => {
    const { object, before, namespace, user, name, uid, dryRun } = review as Review<PersistentVolumeClaim>;
    const consumer = object && (await consumerOf(namespace, signal));
    if (!object || consumer === undefined) return allow;
    const isGuest = user.groups.includes(consumer);
    if (isGuest) {
      const finalizers = validateFinalizers(object, before, [guestVolume.finalizer]);
      if (!finalizers.allowed) return finalizers;
    }
    if (!isGuest && (before !== undefined || !isOfPod(object))) return allow;
    const offered = offeredClasses(rulebook.policies.list(), consumer, classes.list());
    const verdict = validateGuestClaim(
      object,
      before,
      offered.map(({ storageClassName }) => storageClassName),
      rulebook.rulesOf(consumer),
    );
    if (!verdict.allowed || object.metadata.deletionTimestamp !== undefined) return verdict;
    const sourced = before === undefined ? await validateOrigin(object, namespace, consumer, signal) : allow;
    if (!sourced.allowed) return sourced;
    const demand = demandOf(object);
    if (before !== undefined && !isMore(demand, demandOf(before))) return verdict;
    return usage.admit({ key: `${namespace}/${name || uid}`, consumer, demand, dryRun }, signal);
  };

  return {
    routes: new Map<string, Hook>([
      ['/mutate/claims', mutate],
      ['/validate/claims', validate],
      ...createSnapshotHooks({ api, rulebook, usage, consumerOf }),
    ]),
    synced: async (signal?: AbortSignal): Promise<void> => {
      const { policies, quotas: limits } = rulebook;
      await Promise.all([usage, classes, policies, limits].map((one) => one.synced(signal)));
    },
  };
}
