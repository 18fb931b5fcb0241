/**
 * What each creator takes, kept up to date as the caches change: asking costs the same however many there are. Its ShadowPods count, and pods whose
 * ShadowPod is gone until they are gone, too: a pod that takes its time to end still has its node's memory.
 */

import { isFinished } from '#agent/offloading/provider/model/pod-phase.ts';
import type { Cache } from '#kube/model/types.ts';
import { keyOf, type Pod, type PodSpec, refOfKey } from '#shared/domain/kube-object.ts';
import { label } from '#shared/domain/liqo-keys.ts';
import { ownMember } from '#shared/domain/own-member.ts';
import { type Amounts, addAmounts, amountsOf, podUsage } from '#shared/domain/pod-resources.ts';
import type { ShadowPod } from '#shared/schema/liqo/shadow-pod.ts';
import type { Rulebook } from '../guests/rulebook.ts';
import { ownerUid } from '../model/pod-owner.ts';

interface Usage {
  readonly signature: string;
  readonly amounts: Amounts;
}

interface Counted {
  readonly creator: string;
  readonly usage: Usage;
}

/** Pods of one template ask for the same: so many different ones are remembered. */
const remembered = 256;

/** All that `podUsage` reads. */
const signatureOf = ({ containers, initContainers, resources, overhead }: PodSpec): string =>
  JSON.stringify([
    containers.map((container) => container.resources),
    initContainers?.map((container) => [container.resources, container.restartPolicy]),
    resources,
    overhead,
  ]);

export interface UsageSources {
  readonly shadows: Cache<ShadowPod>;
  readonly pods: Cache<Pod>;
  readonly rulebook: Pick<Rulebook, 'specOf' | 'policies' | 'quotas'>;
}

/** A pod that no ShadowPod stands for any more and that has not ended. */
export const isLeftBehind = (pod: Pod, shadow: ShadowPod | undefined): boolean => {
  const owner = ownerUid(pod);
  const ended = pod.status?.phase === 'Succeeded' || pod.status?.phase === 'Failed';
  return owner !== undefined && !ended && shadow?.metadata.uid !== owner;
};

/** What such a pod counts by: what it asks for, and what counts for a container that asks for nothing, as while its ShadowPod was there. */
export const leftSpec = ({ metadata, spec }: Pod, { specOf }: Pick<Rulebook, 'specOf'>): PodSpec =>
  specOf({ metadata, spec: { pod: spec ?? { containers: [] } } } as ShadowPod);

type Container = PodSpec['containers'][number];

/**
 * The spec of a ShadowPod as far as its pod has it: a smaller size that the API server refuses, or has not taken yet, gives nothing back. What the API
 * server filled into the pod, and the ShadowPod does not name, stays out.
 */
export function heldSpec(spec: PodSpec, shadow: ShadowPod, pod: Pod | undefined): PodSpec {
  if (pod?.spec === undefined || ownerUid(pod) !== shadow.metadata.uid) return spec;
  const held = (container: Container, running: readonly Container[] | undefined): Container => {
    const had = running?.find(({ name }) => name === container.name)?.resources?.requests;
    const wanted = { ...container.resources?.limits, ...container.resources?.requests };
    const differing = ['cpu', 'memory'].filter(
      (resource) =>
        wanted[resource] !== undefined && had?.[resource] !== undefined && had[resource] !== wanted[resource],
    );
    if (had === undefined || differing.length === 0) return container;
    const [before, after] = [amountsOf(had), amountsOf(wanted)];
    const larger = differing.filter(
      (resource) => (ownMember(before, resource) ?? 0n) > (ownMember(after, resource) ?? 0n),
    );
    const kept = Object.fromEntries(larger.map((resource) => [resource, had[resource] ?? '0']));
    return {
      ...container,
      resources: { ...container.resources, requests: { ...container.resources?.requests, ...kept } },
    };
  };
  const { containers, initContainers } = pod.spec;
  return {
    ...spec,
    containers: spec.containers.map((container) => held(container, containers)),
    ...(spec.initContainers && { initContainers: spec.initContainers.map((one) => held(one, initContainers)) }),
  };
}

const podPart = 'pod ';
const withoutPart = (key: string): string => (key.startsWith(podPart) ? key.slice(podPart.length) : key);

export class UsageTotals {
  readonly #shadows: Pick<Cache<ShadowPod>, 'get'>;
  readonly #pods: Pick<Cache<Pod>, 'get'>;
  readonly #specOf: Rulebook['specOf'];
  readonly #counts: (shadow: ShadowPod) => boolean;
  readonly #counted = new Map<string, Counted>();
  readonly #totals = new Map<string, Map<string, bigint>>();
  readonly #usages = new Map<string, Usage>();

  /** `counts`: whether one takes anything, besides that finished ones never do; call `look` when that changes without a cache changing. */
  constructor({ shadows, pods, rulebook }: UsageSources, counts: (shadow: ShadowPod) => boolean = () => true) {
    this.#shadows = shadows;
    this.#pods = pods;
    this.#specOf = rulebook.specOf;
    this.#counts = counts;
    const look = ({ before, after }: { readonly before?: ShadowPod | Pod; readonly after?: ShadowPod | Pod }): void => {
      const object = after ?? before;
      if (object !== undefined) this.look(keyOf(object));
    };
    shadows.subscribe(look);
    pods.subscribe(look);
    const lookAtAll = (): void => {
      for (const key of new Set([...this.#counted.keys()].map(withoutPart))) this.look(key);
    };
    rulebook.policies.subscribe(lookAtAll);
    // Their status is written every other second.
    rulebook.quotas.subscribe(({ before, after }) => {
      if (before?.spec.limitsEnforcement !== after?.spec.limitsEnforcement) lookAtAll();
    });
  }

  /** By resource; an unused resource is absent. */
  of(creator: string): Amounts {
    return Object.fromEntries(this.#totals.get(creator) ?? []);
  }

  /** The part of `of(creator)` that this ShadowPod takes, without a pod of its name that an earlier one left behind. */
  part(creator: string, key: string): Amounts {
    const counted = this.#counted.get(key);
    return counted?.creator === creator ? counted.usage.amounts : {};
  }

  look(key: string): void {
    const ref = refOfKey(key);
    const shadow = this.#shadows.get(ref);
    const takes = shadow !== undefined && !isFinished(shadow) && this.#counts(shadow);
    const pod = this.#pods.get(ref);
    this.#count(key, takes ? shadow : undefined, () =>
      heldSpec(this.#specOf(shadow as ShadowPod), shadow as ShadowPod, pod),
    );
    this.#lookAtPod(key, shadow, pod);
  }

  #lookAtPod(key: string, shadow: ShadowPod | undefined, pod: Pod | undefined): void {
    const takes = pod?.spec !== undefined && isLeftBehind(pod, shadow);
    this.#count(`${podPart}${key}`, takes ? pod : undefined, () => leftSpec(pod as Pod, { specOf: this.#specOf }));
  }

  #count(key: string, object: ShadowPod | Pod | undefined, specOf: () => PodSpec): void {
    const creator = object?.metadata.labels?.[label.creatorUser];
    const spec = creator === undefined ? undefined : specOf();
    const before = this.#counted.get(key);
    const signature = spec && signatureOf(spec);
    if (before?.usage.signature === signature && before?.creator === creator) return;
    if (before !== undefined) {
      this.#counted.delete(key);
      this.#add(before, -1n);
    }
    if (creator === undefined || spec === undefined || signature === undefined) return;
    const counted = { creator, usage: this.#usage(signature, spec) };
    this.#counted.set(key, counted);
    this.#add(counted, 1n);
  }

  #usage(signature: string, spec: PodSpec): Usage {
    const known = this.#usages.get(signature);
    if (known !== undefined) return known;
    if (this.#usages.size >= remembered) this.#usages.clear();
    const usage = { signature, amounts: podUsage(spec) };
    this.#usages.set(signature, usage);
    return usage;
  }

  #add({ creator, usage }: Counted, sign: 1n | -1n): void {
    const totals = this.#totals.get(creator) ?? new Map<string, bigint>();
    this.#totals.set(creator, totals);
    for (const [resource, amount] of Object.entries(usage.amounts)) {
      const sum = (totals.get(resource) ?? 0n) + sign * amount;
      if (sum === 0n) totals.delete(resource);
      else totals.set(resource, sum);
    }
    if (totals.size === 0) this.#totals.delete(creator);
  }
}

/** Without these parts of it. */
export const withoutAmounts = (total: Amounts, parts: readonly Amounts[]): Amounts =>
  parts
    .map((part) => Object.fromEntries(Object.entries(part).map(([resource, amount]) => [resource, -amount])))
    .reduce(addAmounts, total);
