/**
 * Hooks for ShadowPods at the provider: ownership, sandbox, quota. Usage is counted from the ShadowPods that exist plus those admitted a moment ago.
 * A refusal is never based on a cache alone: before it the API server is asked, so that a deleted pod's share is free at once.
 */
import type { Hook } from '#agent/admission/hook.ts';
import { allow, deny, type Review, type Verdict } from '#agent/admission/review.ts';
import { creatorOf } from '#agent/model/shadow-pod-creator.ts';
import { isFinished } from '#agent/offloading/provider/model/pod-phase.ts';
import type { Cluster } from '#kube/model/types.ts';
import { coalesced } from '#shared/async/single-flight.ts';
import { keyOf, type Namespace, refOfKey } from '#shared/domain/kube-object.ts';
import { annotation, label } from '#shared/domain/liqo-keys.ts';
import { type Amounts, addAmounts, podUsage } from '#shared/domain/pod-resources.ts';
import type { Clock } from '#shared/ports/clock.ts';
import { type Quota, quotas } from '#shared/schema/liqo/quota.ts';
import { type ShadowPod, shadowPods } from '#shared/schema/liqo/shadow-pod.ts';
import { shadowPodCache } from '../model/caches.ts';
import { usageOf, validateQuota } from '../quota/fits.ts';
import { Reservations } from '../quota/reservations.ts';
import { UsageTotals, withoutAmounts } from '../quota/usage-totals.ts';
import { validateGuestPod } from './pod-sandbox.ts';
import { creatorPatch, validateChange, validateCreator, validateOrigin } from './shadow-pod.ts';

export interface ShadowPodHookDeps {
  readonly cluster: Cluster;
  readonly clock: Clock;
  readonly namespaceOf: (name: string, signal: AbortSignal) => Promise<Namespace | undefined>;
}

/** A pod that requests more than before has to fit into the quota again; one that shrinks always may. */
function grows(before: ShadowPod, after: ShadowPod): boolean {
  const was = podUsage(before.spec.pod);
  return Object.entries(podUsage(after.spec.pod)).some(([resource, amount]) => amount > (was[resource] ?? 0n));
}

type Creation = Review<ShadowPod> & { readonly object: ShadowPod };
const userIndex = 'user';
const userOf = ({ spec }: Quota): string[] => [creatorOf(spec.user)];

export function createShadowPodHooks({ cluster, clock, namespaceOf }: ShadowPodHookDeps) {
  const { api } = cluster;
  const existing = shadowPodCache(cluster.caches);
  const limits = cluster.caches.cache(quotas, { indexes: { [userIndex]: userOf } });
  const reservations = new Reservations();
  existing.subscribe(({ before, after }) => {
    const object = after ?? before;
    if (object) reservations.drop(keyOf(object));
  });
  const totals = new UsageTotals(existing);

  /** Single flight per creator: a consumer that is refused again and again must not cost a list of all its ShadowPods for each attempt. */
  const readLive = coalesced(async (creator: string) => {
    const [granted, live] = await Promise.all([
      api.list(quotas),
      api.list(shadowPods, { labelSelector: `${label.creatorUser}=${creator}` }),
    ]);
    return { granted: granted.filter((quota) => userOf(quota).includes(creator)), live };
  });

  /** By what the cache shows; otherwise as `usedOf`. */
  const usedAsKnown = (creator: string, reserved: ReadonlyMap<string, Amounts>, key: string): Amounts => {
    const moot = new Set([key, ...reserved.keys()]);
    const promised = [...reserved].filter(([other]) => {
      const shadow = other === key ? undefined : existing.get(refOfKey(other));
      return other !== key && !(shadow && isFinished(shadow));
    });
    const others = withoutAmounts(
      totals.of(creator),
      [...moot].map((one) => totals.part(creator, one)),
    );
    return promised.map(([, amounts]) => amounts).reduce(addAmounts, others);
  };

  /** What `creator` uses, without the object `key` itself, whose creation may be a repeated one. A pod that is being resized counts as the new size. */
  const usedOf = (shadows: readonly ShadowPod[], reserved: ReadonlyMap<string, Amounts>, key: string): Amounts => {
    const finished = new Set(shadows.filter(isFinished).map(keyOf));
    const others = shadows.filter((shadow) => keyOf(shadow) !== key && !reserved.has(keyOf(shadow)));
    const promised = [...reserved].filter(([other]) => other !== key && !finished.has(other));
    return promised.map(([, amounts]) => amounts).reduce(addAmounts, usageOf(others));
  };

  async function validateUsage({ object, namespace, name, uid, dryRun, user }: Creation): Promise<Verdict> {
    const creator = object.metadata.labels?.[label.creatorUser] ?? creatorOf(user.name);
    const key = `${namespace}/${name || uid}`;
    const judge = (granted: readonly Quota[], amounts: Amounts): Verdict => {
      if (granted.length === 0) {
        return deny(
          'quota_missing',
          `no Quota for user ${user.name}: only users whose ResourceSlice was accepted create ShadowPods`,
        );
      }
      return (
        granted.map((quota) => validateQuota(quota, object.spec.pod, amounts)).find(({ allowed }) => !allowed) ?? allow
      );
    };
    const admit = (verdict: Verdict): Verdict => {
      // No await between the judgement and this: two admissions of this replica never share what is free.
      if (verdict.allowed && !dryRun) reservations.add(key, creator, podUsage(object.spec.pod), clock.now());
      return verdict;
    };
    const unseen = () => reservations.unseen(creator, clock.now());
    const quick = judge(limits.byIndex(userIndex, creator), usedAsKnown(creator, unseen(), key));
    if (quick.allowed) return admit(quick);
    const before = unseen();
    const { granted, live } = await readLive(creator);
    return admit(judge(granted, usedOf(live, new Map([...before, ...unseen()]), key)));
  }

  const mutate: Hook = ({ object, before, user }) =>
    object
      ? { allowed: true, patch: creatorPatch(object as ShadowPod, before as ShadowPod | undefined, user.name) }
      : allow;

  const validate: Hook = async (review, signal) => {
    const { object, before, namespace, user } = review as Review<ShadowPod>;
    if (!object) return allow;
    if (before) {
      const change = validateChange(before, object, user.name);
      // On its way out everything but the rules on changes is moot.
      if (!change.allowed || object.metadata.deletionTimestamp) return change;
      const sandbox = validateGuestPod(object.spec?.pod, object.metadata.annotations);
      if (!sandbox.allowed || !grows(before, object as ShadowPod)) return sandbox;
      return validateUsage(review as Creation);
    }
    if (object.spec?.pod?.ephemeralContainers?.length) {
      return deny('invalid_input', 'spec.pod.ephemeralContainers: they are added to running pods only; leave them out');
    }
    const creator = validateCreator(object, user.name);
    if (!creator.allowed) return creator;
    const owner = (await namespaceOf(namespace, signal))?.metadata;
    const consumer = owner?.annotations?.[annotation.managedByNamespaceMap]
      ? owner.labels?.[label.remoteClusterId]
      : undefined;
    const origin = validateOrigin(object, namespace, consumer);
    if (!origin.allowed) return origin;
    const sandbox = validateGuestPod(object.spec?.pod, object.metadata.annotations);
    return sandbox.allowed ? validateUsage(review as Creation) : sandbox;
  };

  return {
    mutate,
    validate,
    synced: async (signal?: AbortSignal): Promise<void> => {
      await Promise.all([existing.synced(signal), limits.synced(signal)]);
    },
  };
}
