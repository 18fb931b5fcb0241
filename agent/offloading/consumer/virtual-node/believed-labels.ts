/**
 * Which labels a provider may claim for the Node that stands for it. A clusterSelector chooses providers by them, and with the namespace go its Secrets: only
 * what a policy of this cluster lists for that provider is believed. Pure.
 */
import type { PeeringPolicy } from '#shared/schema/isthmus/peering-policy.ts';

type Labels = Readonly<Record<string, string>>;

/** What a pod needs to know to run at all, and no reason to send it anywhere. */
const always: ReadonlySet<string> = new Set(['kubernetes.io/arch', 'kubernetes.io/os']);

export interface BelievedLabels {
  readonly labels: Labels;
  /** As `key=value`, in order. */
  readonly leftOut: readonly string[];
}

export function believedLabels(claimed: Labels, policies: readonly PeeringPolicy[], provider: string): BelievedLabels {
  const lists = policies.flatMap(({ spec: { asConsumer } }) =>
    asConsumer?.enabled !== false && asConsumer?.peers.some((peer) => peer === '*' || peer === provider)
      ? [asConsumer.nodeLabels ?? {}]
      : [],
  );
  const isBelieved = ([key, value]: [string, string]): boolean =>
    always.has(key) ||
    lists.some((list) => Object.hasOwn(list, key) && list[key]?.some((one) => one === '*' || one === value));
  const all = Object.entries(claimed).sort(([a], [b]) => (a < b ? -1 : 1));
  return {
    labels: Object.fromEntries(all.filter(isBelieved)),
    leftOut: all.filter((one) => !isBelieved(one)).map(([key, value]) => `${key}=${value}`),
  };
}
