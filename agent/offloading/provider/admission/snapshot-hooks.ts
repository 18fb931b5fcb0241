/** Hooks for VolumeSnapshots in namespaces of consumers: of what a guest may take them, and the quota. Those of users of the provider are not judged. */
import type { Hook } from '#agent/admission/hook.ts';
import { allow, type Review } from '#agent/admission/review.ts';
import { validateFinalizers } from '#agent/peering/admission/finalizers.ts';
import type { KubeApi } from '#kube/model/types.ts';
import { guestSnapshot } from '#shared/domain/guest-volume-keys.ts';
import type { VolumeSnapshot } from '#shared/domain/snapshot-kinds.ts';
import type { Rulebook } from '../guests/rulebook.ts';
import { snapshotDemand, snapshotKey } from '../storage/demand.ts';
import type { GuestSource } from './claim-source.ts';
import { guestSnapshotPatch, validateGuestSnapshot } from './guest-snapshot.ts';
import { readClaimSource } from './guest-source.ts';
import type { StorageUsage } from './storage-usage.ts';

export interface SnapshotHookDeps {
  readonly api: KubeApi;
  readonly rulebook: Rulebook;
  readonly usage: StorageUsage;
  /** Undefined: the namespace is no consumer's. */
  readonly consumerOf: (namespace: string, signal: AbortSignal) => Promise<string | undefined>;
}

export function createSnapshotHooks({ api, rulebook, usage, consumerOf }: SnapshotHookDeps): Map<string, Hook> {
  const sourceOf = async ({ spec }: VolumeSnapshot, namespace: string, signal: AbortSignal): Promise<GuestSource> => {
    const name = spec?.source?.persistentVolumeClaimName;
    return name ? readClaimSource(api, { namespace, name }, signal) : {};
  };

  /** Undefined: it was not made by a guest. */
  async function guestOf({ namespace, user }: Review, signal: AbortSignal): Promise<string | undefined> {
    const consumer = await consumerOf(namespace, signal);
    return consumer !== undefined && user.groups.includes(consumer) ? consumer : undefined;
  }

  const mutate: Hook = async (review, signal) => {
    const { object, before, namespace } = review as Review<VolumeSnapshot>;
    const consumer = object && before === undefined ? await guestOf(review, signal) : undefined;
    if (!object || consumer === undefined) return allow;
    return { allowed: true, patch: guestSnapshotPatch(object, consumer, await sourceOf(object, namespace, signal)) };
  };

  const validate: Hook = async (review, signal) => {
    const { object, before, namespace, name, uid, dryRun } = review as Review<VolumeSnapshot>;
    const consumer = object && (await guestOf(review, signal));
    if (!object || consumer === undefined) return allow;
    const finalizers = validateFinalizers(object, before, [guestSnapshot.finalizer]);
    if (!finalizers.allowed) return finalizers;
    const source = before === undefined ? await sourceOf(object, namespace, signal) : undefined;
    const verdict = validateGuestSnapshot(object, before, source, consumer, rulebook.rulesOf(consumer));
    if (!verdict.allowed || before !== undefined) return verdict;
    const key = snapshotKey(`${namespace}/${name || uid}`);
    return usage.admit({ key, consumer, demand: snapshotDemand(object), dryRun }, signal);
  };

  return new Map([
    ['/mutate/snapshots', mutate],
    ['/validate/snapshots', validate],
  ]);
}
