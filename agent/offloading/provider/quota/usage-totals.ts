/** What the ShadowPods of each creator take, kept up to date as the cache changes: asking costs the same however many there are. */
import { isFinished } from '#agent/offloading/provider/model/pod-phase.ts';
import type { Cache } from '#kube/model/types.ts';
import { keyOf, type PodSpec, refOfKey } from '#shared/domain/kube-object.ts';
import { label } from '#shared/domain/liqo-keys.ts';
import { type Amounts, addAmounts, podUsage } from '#shared/domain/pod-resources.ts';
import type { ShadowPod } from '#shared/schema/liqo/shadow-pod.ts';

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

export class UsageTotals {
  readonly #shadows: Cache<ShadowPod>;
  readonly #counts: (shadow: ShadowPod) => boolean;
  readonly #counted = new Map<string, Counted>();
  readonly #totals = new Map<string, Map<string, bigint>>();
  readonly #usages = new Map<string, Usage>();

  /** `counts`: whether one takes anything, besides that finished ones never do; call `look` when that changes without the cache changing. */
  constructor(shadows: Cache<ShadowPod>, counts: (shadow: ShadowPod) => boolean = () => true) {
    this.#shadows = shadows;
    this.#counts = counts;
    shadows.subscribe(({ before, after }) => {
      const object = after ?? before;
      if (object !== undefined) this.look(keyOf(object));
    });
  }

  /** By resource; an unused resource is absent. */
  of(creator: string): Amounts {
    return Object.fromEntries(this.#totals.get(creator) ?? []);
  }

  /** The part of `of(creator)` that this ShadowPod takes. */
  part(creator: string, key: string): Amounts {
    const counted = this.#counted.get(key);
    return counted?.creator === creator ? counted.usage.amounts : {};
  }

  look(key: string): void {
    const shadow = this.#shadows.get(refOfKey(key));
    const creator = shadow?.metadata.labels?.[label.creatorUser];
    const isCounted = shadow !== undefined && creator !== undefined && !isFinished(shadow) && this.#counts(shadow);
    const before = this.#counted.get(key);
    const signature = isCounted ? signatureOf(shadow.spec.pod) : undefined;
    if (before?.usage.signature === signature && before?.creator === (isCounted ? creator : undefined)) return;
    if (before !== undefined) {
      this.#counted.delete(key);
      this.#add(before, -1n);
    }
    if (!isCounted || signature === undefined) return;
    const counted = { creator, usage: this.#usage(signature, shadow.spec.pod) };
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
