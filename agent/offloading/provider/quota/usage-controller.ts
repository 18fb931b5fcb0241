/** Provider: says in each Quota what its user takes of it and what is left, at most every two seconds however many pods come and go. */

import { creatorOf } from '#agent/model/shadow-pod-creator.ts';
import type { Controller } from '#kube/model/types.ts';
import { createController, watch } from '#kube/run/controller.ts';
import { writeStatus } from '#kube/writes/write-if-changed.ts';
import { guestVolume } from '#shared/domain/guest-volume-keys.ts';
import { type KubeObject, keyOf, refOfKey } from '#shared/domain/kube-object.ts';
import { label } from '#shared/domain/liqo-keys.ts';
import { again, settled } from '#shared/domain/outcome.ts';
import { ownMember } from '#shared/domain/own-member.ts';
import { type Amounts, addAmounts, amountsOf, showAmount } from '#shared/domain/pod-resources.ts';
import { type Quota, type QuotaStatus, quotas } from '#shared/schema/liqo/quota.ts';
import { createRulebook } from '../guests/rulebook.ts';
import { offloadedPodCache, shadowPodCache } from '../model/caches.ts';
import { guestClaimCache, keptVolumeCache, storageOfConsumer } from '../storage/caches.ts';
import { usedBy } from '../storage/demand.ts';
import { createSnapshotUsage, type UsageDeps } from './snapshot-usage.ts';
import { UsageTotals } from './usage-totals.ts';

/** Resources that the quota names, and all others in use. */
export function quotaStatus({ spec }: Pick<Quota, 'spec'>, used: Amounts): QuotaStatus {
  const limits = amountsOf(spec.resources);
  const names = [...new Set([...Object.keys(limits), ...Object.keys(used)])].sort();
  const texts = (amount: (name: string) => bigint | undefined): Record<string, string> =>
    Object.fromEntries(
      names.flatMap((name) => {
        const value = amount(name);
        return value === undefined ? [] : [[name, showAmount(name, value)]];
      }),
    );
  return {
    used: texts((name) => ownMember(used, name) ?? 0n),
    free: texts((name) => {
      const limit = ownMember(limits, name);
      const taken = ownMember(used, name) ?? 0n;
      return limit === undefined ? undefined : limit > taken ? limit - taken : 0n;
    }),
  };
}

const everyMs = 2_000;

export function createQuotaUsageController({ cluster, clock, log }: UsageDeps): Controller {
  const { api, caches } = cluster;
  const rulebook = createRulebook(caches);
  const limits = rulebook.quotas;
  const shadows = shadowPodCache(caches);
  const pods = offloadedPodCache(caches);
  const totals = new UsageTotals({ shadows, pods, rulebook });
  const ofCreator = ({ metadata }: KubeObject): string[] =>
    rulebook.quotasOf(metadata.labels?.[label.creatorUser] ?? '').map(keyOf);
  const claims = guestClaimCache(caches);
  const kept = keptVolumeCache(caches);
  const quotasOfConsumer = (consumer = ''): string[] =>
    limits
      .list()
      .flatMap((quota) => (quota.metadata.labels?.[label.remoteClusterId] === consumer ? [keyOf(quota)] : []));
  /** Of the consumer: its slices share what it has of storage. */
  const storageOf = ({ metadata }: Quota): Amounts => {
    const consumer = metadata.labels?.[label.remoteClusterId] ?? '';
    return usedBy({ ...storageOfConsumer(consumer, claims, kept), snapshots: snapshots.of(consumer) });
  };
  const snapshots = createSnapshotUsage({ cluster, clock, log }, (consumer) => {
    for (const key of quotasOfConsumer(consumer)) controller.enqueue(key);
  });
  const writtenAt = new Map<string, number>();
  const controller = createController(
    {
      name: 'quota-usage',
      workers: 1,
      watches: [
        watch(limits, (quota) => [keyOf(quota)]),
        watch(shadows, ofCreator),
        watch(pods, ofCreator),
        watch(claims, ({ metadata }) => quotasOfConsumer(metadata.labels?.[guestVolume.label])),
        watch(kept, ({ metadata }) => quotasOfConsumer(metadata.labels?.[guestVolume.keptFor])),
        watch(rulebook.policies, () => limits.list().map(keyOf)),
      ],
      async reconcile(key, signal) {
        const quota = limits.get(refOfKey(key));
        if (quota === undefined || quota.metadata.deletionTimestamp !== undefined) {
          writtenAt.delete(key);
          return settled;
        }
        const waitMs = (writtenAt.get(key) ?? Number.NEGATIVE_INFINITY) + everyMs - clock.now();
        if (waitMs > 0) return again(waitMs);
        const used = addAmounts(totals.of(creatorOf(quota.spec.user)), storageOf(quota));
        if (await writeStatus(api, quotas, quota, quotaStatus(quota, used), signal)) writtenAt.set(key, clock.now());
        return settled;
      },
    },
    { clock, log },
  );
  return {
    ...controller,
    measure(by) {
      controller.measure(by);
      snapshots.controller.measure(by);
    },
    async run(signal) {
      await Promise.all([controller.run(signal), snapshots.controller.run(signal)]);
    },
  };
}
