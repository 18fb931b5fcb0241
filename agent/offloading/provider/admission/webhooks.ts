/**
 * Hooks for ShadowPods at the provider: ownership, sandbox, quota. Usage is counted from the ShadowPods that exist, those admitted a moment ago and
 * pods that outlive their ShadowPod.
 */

import { isDeepStrictEqual } from 'node:util';
import type { Hook } from '#agent/admission/hook.ts';
import { allow, deny, type Review, type Verdict } from '#agent/admission/review.ts';
import { creatorOf } from '#agent/model/shadow-pod-creator.ts';
import { isFinished } from '#agent/offloading/provider/model/pod-phase.ts';
import { validateFinalizers } from '#agent/peering/admission/finalizers.ts';
import type { Cluster } from '#kube/model/types.ts';
import { ownerName } from '#kube/writes/owner-references.ts';
import { coalesced } from '#shared/async/single-flight.ts';
import { pods } from '#shared/domain/core-kinds.ts';
import { keyOf, type Namespace, type Pod, type PodSpec, refOfKey } from '#shared/domain/kube-object.ts';
import { label, managedByShadowPod } from '#shared/domain/liqo-keys.ts';
import { ownMember } from '#shared/domain/own-member.ts';
import { type Amounts, addAmounts, podUsage } from '#shared/domain/pod-resources.ts';
import type { Clock } from '#shared/ports/clock.ts';
import { type Quota, quotas } from '#shared/schema/liqo/quota.ts';
import { resourceSlices } from '#shared/schema/liqo/resource-slice.ts';
import { type ShadowPod, shadowPods } from '#shared/schema/liqo/shadow-pod.ts';
import { limitations } from '../guests/guest-spec.ts';
import { createRulebook } from '../guests/rulebook.ts';
import { offloadedPodCache, shadowPodCache } from '../model/caches.ts';
import { mappedFor } from '../model/guest-namespace.ts';
import { createAdmissionGate } from '../quota/admission-gate.ts';
import { usageOf, validateQuota } from '../quota/fits.ts';
import { heldSpec, isLeftBehind, leftSpec, UsageTotals, withoutAmounts } from '../quota/usage-totals.ts';
import { validateGuestPod } from './pod-sandbox.ts';
import { creatorPatch, validateChange, validateCreator, validateOrigin } from './shadow-pod.ts';

export interface ShadowPodHookDeps {
  readonly cluster: Cluster;
  readonly clock: Clock;
  readonly namespaceOf: (name: string, signal: AbortSignal) => Promise<Namespace | undefined>;
}

/** A pod that requests more than before has to fit into the quota again; one that shrinks always may. */
function grows(before: PodSpec, after: PodSpec): boolean {
  const was = podUsage(before);
  return Object.entries(podUsage(after)).some(([resource, amount]) => amount > (ownMember(was, resource) ?? 0n));
}

interface Exist {
  readonly live: readonly ShadowPod[];
  readonly leftBehind: readonly Pod[];
  readonly specOf: (shadow: ShadowPod) => PodSpec;
}

type Creation = Review<ShadowPod> & { readonly object: ShadowPod };

export function createShadowPodHooks({ cluster, clock, namespaceOf }: ShadowPodHookDeps) {
  const { api } = cluster;
  const existing = shadowPodCache(cluster.caches);
  const offloaded = offloadedPodCache(cluster.caches);
  const rulebook = createRulebook(cluster.caches);
  const slices = cluster.caches.cache(resourceSlices);
  const gate = createAdmissionGate(clock);
  existing.subscribe(({ before, after }) => {
    const object = after ?? before;
    if (object) gate.drop(keyOf(object));
  });
  const totals = new UsageTotals({ shadows: existing, pods: offloaded, rulebook });

  /** Single flight per creator: a consumer that is refused again and again must not cost a list of all its ShadowPods for each attempt. */
  const readLive = coalesced(async (creator: string) => {
    const labelSelector = `${label.creatorUser}=${creator}`;
    // Pods first: one that is made between the two lists has a ShadowPod in the second, and one whose ShadowPod goes between them counts still.
    const running = await api.list(pods, {
      labelSelector: `${labelSelector},${label.managedBy}=${managedByShadowPod}`,
    });
    const [granted, live] = await Promise.all([api.list(quotas), api.list(shadowPods, { labelSelector })]);
    const byKey = new Map(live.map((shadow) => [keyOf(shadow), shadow]));
    const leftBehind = running.filter((pod) => isLeftBehind(pod, byKey.get(keyOf(pod))));
    const byName = new Map(running.map((pod) => [keyOf(pod), pod]));
    const specOf = (shadow: ShadowPod): PodSpec => heldSpec(rulebook.specOf(shadow), shadow, byName.get(keyOf(shadow)));
    return { granted: granted.filter(({ spec }) => creatorOf(spec.user) === creator), live, leftBehind, specOf };
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

  /**
   * What `creator` uses, without the object `key` itself, whose creation may be a repeated one. A pod that is being resized counts as the larger of both
   * sizes.
   */
  const usedOf = (
    { live: shadows, leftBehind, specOf }: Exist,
    reserved: ReadonlyMap<string, Amounts>,
    key: string,
  ): Amounts => {
    const finished = new Set(shadows.filter(isFinished).map(keyOf));
    const others = shadows.filter((shadow) => keyOf(shadow) !== key && !reserved.has(keyOf(shadow)));
    const promised = [...reserved].filter(([other]) => other !== key && !finished.has(other));
    const still = leftBehind.map((pod) => podUsage(leftSpec(pod, rulebook)));
    return [...promised.map(([, amounts]) => amounts), ...still].reduce(addAmounts, usageOf(others, specOf));
  };

  async function validateUsage({ object, before, namespace, name, uid, dryRun, user }: Creation): Promise<Verdict> {
    const creator = object.metadata.labels?.[label.creatorUser] ?? creatorOf(user.name);
    const key = `${namespace}/${name || uid}`;
    const labels = { ...object.metadata.labels, [label.creatorUser]: creator };
    const shadow = { ...object, metadata: { ...object.metadata, labels } };
    // A living pod keeps its class.
    const problem = before ? undefined : rulebook.problemOf(shadow);
    if (problem !== undefined) return deny('sandbox_refused', problem);
    const spec = rulebook.specOf(shadow);
    const judge = (granted: readonly Quota[], amounts: Amounts): Verdict => {
      if (granted.length === 0) {
        return deny(
          'quota_missing',
          `no Quota for user ${user.name}: only users whose ResourceSlice was accepted create ShadowPods`,
        );
      }
      return granted.map((quota) => validateQuota(quota, spec, amounts)).find(({ allowed }) => !allowed) ?? allow;
    };
    return gate.admit(
      { key, user: creator, amounts: podUsage(spec), dryRun },
      (reserved) => judge(rulebook.quotasOf(creator), usedAsKnown(creator, reserved, key)),
      async () => {
        const { granted, ...exist } = await readLive(creator);
        return (reserved) => judge(granted, usedOf(exist, reserved, key));
      },
    );
  }

  /** What the provider itself answered to the consumer's slices. */
  const nodeSelectorOf = (creator: string): Record<string, string> =>
    Object.assign(
      {},
      ...rulebook.quotasOf(creator).map((quota) => {
        const { namespace = '' } = quota.metadata;
        return slices.get({ namespace, name: ownerName(resourceSlices, quota) ?? '' })?.status?.nodeSelector;
      }),
    );

  function validateSandbox({ spec, metadata }: ShadowPod): Verdict {
    const rules = rulebook.rulesOf(metadata.labels?.[label.origin] ?? '');
    const nodeSelector = nodeSelectorOf(metadata.labels?.[label.creatorUser] ?? '');
    const verdict = validateGuestPod(spec?.pod, metadata.annotations, { rules, nodeSelector });
    return verdict.allowed
      ? { ...verdict, warnings: limitations(spec.pod, metadata.annotations ?? {}, rules) }
      : verdict;
  }

  const mutate: Hook = ({ object, before, user }) =>
    object
      ? { allowed: true, patch: creatorPatch(object as ShadowPod, before as ShadowPod | undefined, user.name) }
      : allow;

  const validate: Hook = async (review, signal) => {
    const { object, before, namespace, user } = review as Review<ShadowPod>;
    if (!object) return allow;
    const finalizers = validateFinalizers(object, before);
    if (!finalizers.allowed) return finalizers;
    if (before) {
      const change = validateChange(before, object, user.name);
      // On its way out everything but the rules on changes is moot.
      if (!change.allowed || object.metadata.deletionTimestamp) return change;
      // What a policy refuses since then may live on, and be labelled.
      const same = isDeepStrictEqual(
        [before.spec, before.metadata.annotations],
        [object.spec, object.metadata.annotations],
      );
      if (same) return change;
      const sandbox = validateSandbox(object);
      if (!sandbox.allowed || !grows(rulebook.specOf(before), rulebook.specOf(object))) return sandbox;
      return validateUsage(review as Creation);
    }
    if (object.spec?.pod?.ephemeralContainers?.length) {
      return deny('invalid_input', 'spec.pod.ephemeralContainers: they are added to running pods only; leave them out');
    }
    const creator = validateCreator(object, user.name);
    if (!creator.allowed) return creator;
    const consumer = mappedFor(await namespaceOf(namespace, signal));
    const origin = validateOrigin(object, namespace, consumer);
    if (!origin.allowed) return origin;
    const sandbox = validateSandbox(object);
    if (!sandbox.allowed) return sandbox;
    const usage = await validateUsage(review as Creation);
    return usage.allowed ? { ...usage, ...sandbox } : usage;
  };

  return {
    mutate,
    validate,
    synced: async (signal?: AbortSignal): Promise<void> => {
      const { policies, quotas: limits } = rulebook;
      await Promise.all([existing, offloaded, limits, policies, slices].map((cache) => cache.synced(signal)));
    },
  };
}
