/** Whether a claim or a VolumeSnapshot of a guest fits into what its consumer may have of storage. A refusal for lack of room is never based on a cache alone. */
import type { Verdict } from '#agent/admission/review.ts';
import { listIfServed } from '#kube/model/optional-kind.ts';
import type { Cluster } from '#kube/model/types.ts';
import { coalesced } from '#shared/async/single-flight.ts';
import { type PersistentVolumeClaim, persistentVolumeClaims, persistentVolumes } from '#shared/domain/core-kinds.ts';
import { guestVolume } from '#shared/domain/guest-volume-keys.ts';
import { keyOf } from '#shared/domain/kube-object.ts';
import { label } from '#shared/domain/liqo-keys.ts';
import { ownMember } from '#shared/domain/own-member.ts';
import { type Amounts, addAmounts } from '#shared/domain/pod-resources.ts';
import { volumeSnapshotContents, volumeSnapshots } from '#shared/domain/snapshot-kinds.ts';
import type { Clock } from '#shared/ports/clock.ts';
import { type Quota, quotas } from '#shared/schema/liqo/quota.ts';
import type { Rulebook } from '../guests/rulebook.ts';
import { createAdmissionGate } from '../quota/admission-gate.ts';
import { guestClaimCache, keptVolumeCache, storageOfConsumer } from '../storage/caches.ts';
import { type ConsumerStorage, demandOf, fitsStorage, usedBy } from '../storage/demand.ts';

interface Asking {
  readonly key: string;
  readonly consumer: string;
  readonly demand: Amounts;
  readonly dryRun: boolean;
}

export interface StorageUsage {
  admit(asking: Asking, signal: AbortSignal): Promise<Verdict>;
  synced(signal?: AbortSignal): Promise<void>;
}

export const isMore = (after: Amounts, before: Amounts): boolean =>
  Object.entries(after).some(([resource, amount]) => amount > (ownMember(before, resource) ?? 0n));

type Snapshots = NonNullable<ConsumerStorage['snapshots']>;

export function createStorageUsage({ api, caches }: Cluster, clock: Clock, rulebook: Rulebook): StorageUsage {
  const claims = guestClaimCache(caches);
  const kept = keptVolumeCache(caches);
  const gate = createAdmissionGate(clock);
  claims.subscribe(({ before, after }) => {
    const key = keyOf(after ?? (before as PersistentVolumeClaim));
    const consumer = (after ?? before)?.metadata.labels?.[guestVolume.label] ?? '';
    const reserved = gate.unseen(consumer).get(key);
    // An event that is older than the growth that was admitted does not show it.
    if (after === undefined || reserved === undefined || !isMore(reserved, demandOf(after))) gate.drop(key);
  });

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

  /** Always by the API server: there is no cache of kinds that may not be installed. */
  async function snapshotsOf(consumer: string, signal: AbortSignal): Promise<Snapshots> {
    const living = await listIfServed(
      api,
      volumeSnapshots,
      { labelSelector: `${guestVolume.label}=${consumer}` },
      signal,
    );
    if (living === undefined) return [];
    const ended = await listIfServed(
      api,
      volumeSnapshotContents,
      { labelSelector: `${guestVolume.keptFor}=${consumer}` },
      signal,
    );
    return [...living, ...(ended ?? [])];
  }

  return {
    async admit({ key, consumer, demand, dryRun }, signal) {
      const snapshots = await snapshotsOf(consumer, signal);
      const judge = (
        granted: readonly Quota[],
        storage: ConsumerStorage,
        reserved: ReadonlyMap<string, Amounts>,
      ): Verdict => {
        const others = [...reserved].filter(([other]) => other !== key).map(([, amounts]) => amounts);
        const except = new Set([key, ...reserved.keys()]);
        const used = others.reduce(addAmounts, usedBy({ ...storage, snapshots }, except));
        return fitsStorage(granted, demand, used, consumer);
      };
      return gate.admit(
        { key, user: consumer, amounts: demand, dryRun },
        (reserved) =>
          judge(ofConsumer(rulebook.quotas.list(), consumer), storageOfConsumer(consumer, claims, kept), reserved),
        async () => {
          const { granted, storage } = await readLive(consumer);
          return (reserved) => judge(granted, storage, reserved);
        },
      );
    },
    synced: async (signal) => {
      await Promise.all([claims, kept].map((cache) => cache.synced(signal)));
    },
  };
}
