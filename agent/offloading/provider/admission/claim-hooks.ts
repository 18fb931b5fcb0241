/**
 * Hooks for claims in namespaces of consumers: what may be asked for, and the quota at creation and growth. Claims of users of the provider are not
 * judged, but count. A refusal for lack of room is never based on a cache alone.
 */

import type { Hook } from '#agent/admission/hook.ts';
import { allow, type Review, type Verdict } from '#agent/admission/review.ts';
import { validateFinalizers } from '#agent/peering/admission/finalizers.ts';
import { offeredClasses } from '#agent/peering/slices/storage-offer.ts';
import type { Cluster } from '#kube/model/types.ts';
import { coalesced } from '#shared/async/single-flight.ts';
import {
  type PersistentVolumeClaim,
  persistentVolumeClaims,
  persistentVolumes,
  storageClasses,
} from '#shared/domain/core-kinds.ts';
import { guestVolume } from '#shared/domain/guest-volume-keys.ts';
import { keyOf, type Namespace } from '#shared/domain/kube-object.ts';
import { label } from '#shared/domain/liqo-keys.ts';
import { ownMember } from '#shared/domain/own-member.ts';
import { type Amounts, addAmounts } from '#shared/domain/pod-resources.ts';
import type { Clock } from '#shared/ports/clock.ts';
import { type Quota, quotas } from '#shared/schema/liqo/quota.ts';
import { createRulebook } from '../guests/rulebook.ts';
import { createAdmissionGate } from '../quota/admission-gate.ts';
import { guestClaimCache, keptVolumeCache } from '../storage/caches.ts';
import { type ConsumerStorage, demandOf, fitsStorage, usedBy } from '../storage/demand.ts';
import { namedSource, validateSource } from './claim-source.ts';
import { guestClaimPatch, validateGuestClaim } from './guest-claim.ts';

export interface ClaimHookDeps {
  readonly cluster: Cluster;
  readonly clock: Clock;
  readonly namespaceOf: (name: string, signal: AbortSignal) => Promise<Namespace | undefined>;
}

type ClaimReview = Review<PersistentVolumeClaim> & { readonly object: PersistentVolumeClaim };

const isMore = (after: Amounts, before: Amounts): boolean =>
  Object.entries(after).some(([resource, amount]) => amount > (ownMember(before, resource) ?? 0n));

/** Made by the cluster for a generic ephemeral volume: the guest wrote its template. */
const isOfPod = ({ metadata }: PersistentVolumeClaim): boolean =>
  metadata.ownerReferences?.some(({ kind, controller }) => kind === 'Pod' && controller) ?? false;

export function createClaimHooks({ cluster, clock, namespaceOf }: ClaimHookDeps) {
  const { api } = cluster;
  const rulebook = createRulebook(cluster.caches);
  const claims = guestClaimCache(cluster.caches);
  const kept = keptVolumeCache(cluster.caches);
  const classes = cluster.caches.cache(storageClasses);
  const gate = createAdmissionGate(clock);
  claims.subscribe(({ before, after }) => {
    const key = keyOf(after ?? (before as PersistentVolumeClaim));
    const consumer = (after ?? before)?.metadata.labels?.[guestVolume.label] ?? '';
    const reserved = gate.unseen(consumer).get(key);
    // An event that is older than the growth that was admitted does not show it.
    if (after === undefined || reserved === undefined || !isMore(reserved, demandOf(after))) gate.drop(key);
  });

  const consumerOf = async (namespace: string, signal: AbortSignal): Promise<string | undefined> => {
    const labels = (await namespaceOf(namespace, signal))?.metadata.labels;
    return labels?.[label.tenantNamespace] === undefined ? labels?.[label.remoteClusterId] : undefined;
  };
  const ofConsumer = (all: readonly Quota[], consumer: string): readonly Quota[] =>
    all.filter(({ metadata }) => metadata.labels?.[label.remoteClusterId] === consumer);

  /** Single flight per consumer: one that is refused again and again must not cost a list for each attempt. */
  const readLive = coalesced(async (consumer: string) => {
    // Claims first: a claim that ends between the lists is a kept volume in the second, and counts once.
    const live = await api.list(persistentVolumeClaims, { labelSelector: `${guestVolume.label}=${consumer}` });
    const [granted, volumes] = await Promise.all([
      api.list(quotas, { labelSelector: `${label.remoteClusterId}=${consumer}` }),
      api.list(persistentVolumes, { labelSelector: `${guestVolume.keptFor}=${consumer}` }),
    ]);
    return { granted, storage: { claims: live, kept: volumes } };
  });
  const known = (consumer: string): ConsumerStorage => ({
    claims: claims.list().filter(({ metadata }) => metadata.labels?.[guestVolume.label] === consumer),
    kept: kept.list().filter(({ metadata }) => metadata.labels?.[guestVolume.keptFor] === consumer),
  });

  async function validateUsage(
    { object, namespace, name, uid, dryRun }: ClaimReview,
    consumer: string,
  ): Promise<Verdict> {
    const key = `${namespace}/${name || uid}`;
    const demand = demandOf(object);
    const judge = (
      granted: readonly Quota[],
      storage: ConsumerStorage,
      reserved: ReadonlyMap<string, Amounts>,
    ): Verdict => {
      const others = [...reserved].filter(([other]) => other !== key).map(([, amounts]) => amounts);
      const used = others.reduce(addAmounts, usedBy(storage, new Set([key, ...reserved.keys()])));
      return fitsStorage(granted, demand, used, consumer);
    };
    return gate.admit(
      { key, user: consumer, amounts: demand, dryRun },
      (reserved) => judge(ofConsumer(rulebook.quotas.list(), consumer), known(consumer), reserved),
      async () => {
        const { granted, storage } = await readLive(consumer);
        return (reserved) => judge(granted, storage, reserved);
      },
    );
  }

  /** Asks the API server: the caches may not show yet that a claim or its volume has ended. */
  async function validateOrigin(
    object: PersistentVolumeClaim,
    namespace: string,
    consumer: string,
    signal: AbortSignal,
  ): Promise<Verdict> {
    const named = namedSource(object);
    if (named === undefined) return allow;
    const claim =
      named.kind === 'claim'
        ? await api.get(persistentVolumeClaims, { namespace, name: named.name }, signal)
        : undefined;
    const { volumeName } = claim?.spec ?? {};
    const volume = volumeName ? await api.get(persistentVolumes, { name: volumeName }, signal) : undefined;
    return validateSource(object, named, { claim, volume }, consumer, classes.list());
  }

  const mutate: Hook = async (review, signal) => {
    const { object, namespace } = review as Review<PersistentVolumeClaim>;
    const consumer = object && (await consumerOf(namespace, signal));
    return object && consumer !== undefined ? { allowed: true, patch: guestClaimPatch(object, consumer) } : allow;
  };

  const validate: Hook = async (review, signal) => {
    const { object, before, namespace, user } = review as Review<PersistentVolumeClaim>;
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
    return before === undefined || isMore(demandOf(object), demandOf(before))
      ? validateUsage(review as ClaimReview, consumer)
      : verdict;
  };

  return {
    routes: new Map<string, Hook>([
      ['/mutate/claims', mutate],
      ['/validate/claims', validate],
    ]),
    synced: async (signal?: AbortSignal): Promise<void> => {
      const { policies, quotas: limits } = rulebook;
      await Promise.all([claims, kept, classes, policies, limits].map((cache) => cache.synced(signal)));
    },
  };
}
