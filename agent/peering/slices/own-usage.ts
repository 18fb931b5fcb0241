/**
 * What the pods of this cluster itself request, by node, and what guests' pods do, by the slice they were made for; kept up to date as pods come and go:
 * asking costs the same however many there are.
 */

import type { Cache, Caches, Transform } from '#kube/model/types.ts';
import { pods } from '#shared/domain/core-kinds.ts';
import { keyOf, type Pod } from '#shared/domain/kube-object.ts';
import { label, managedByShadowPod } from '#shared/domain/liqo-keys.ts';
import { ownMember } from '#shared/domain/own-member.ts';
import { type Amounts, podUsage, showAmount } from '#shared/domain/pod-resources.ts';

const guestLabels = [label.managedBy, label.creatorUser, label.origin] as const;

const inWords = (amounts: Amounts): Record<string, string> =>
  Object.fromEntries(Object.entries(amounts).map(([key, of]) => [key, showAmount(key, of)]));

/** Of a pod only where it is, whose it is and what it takes; the sum stands in `spec.resources`, which counts instead of the containers. */
const slimPod: Transform<Pod> = ({ apiVersion, kind, metadata, spec }) => {
  const { pods: _one, ...requests } = podUsage(spec ?? { containers: [] });
  const { name, namespace, uid, resourceVersion, labels } = metadata;
  const kept = guestLabels.flatMap((key) => (labels?.[key] === undefined ? [] : [[key, labels[key]]]));
  return {
    apiVersion,
    kind,
    metadata: {
      name,
      ...(namespace !== undefined && { namespace }),
      ...(uid !== undefined && { uid }),
      ...(resourceVersion !== undefined && { resourceVersion }),
      ...(labels?.[label.managedBy] === managedByShadowPod && { labels: Object.fromEntries(kept) }),
    },
    spec: {
      containers: [],
      ...(spec?.nodeName !== undefined && { nodeName: spec.nodeName }),
      resources: { requests: inWords(requests) },
    },
  } as Pod;
};

/** Pods that have a node and have not ended. */
export const placedPods = (caches: Caches): Cache<Pod> =>
  caches.cache(pods, {
    fieldSelector: 'spec.nodeName!=,status.phase!=Succeeded,status.phase!=Failed',
    transform: slimPod,
  });

/** The pods of one slice, which may be gone already. */
export interface Guest {
  readonly consumer: string;
  /** As its pods are labelled. */
  readonly creator: string;
}

interface Counted {
  /** A name of a node, or a Guest in JSON, which no name of a node is. */
  readonly holder: string;
  readonly amounts: Amounts;
}

export interface PlacedUsage {
  /** Of the cluster's own pods on it. */
  own(node: string): Amounts;
  guests(): readonly (Guest & { readonly amounts: Amounts })[];
}

function guestOf({ metadata: { labels = {} } }: Pod): Guest | undefined {
  if (labels[label.managedBy] !== managedByShadowPod) return undefined;
  return { consumer: labels[label.origin] ?? '', creator: labels[label.creatorUser] ?? '' };
}

const isSame = (a: Counted | undefined, b: Counted | undefined): boolean =>
  a?.holder === b?.holder &&
  Object.keys({ ...a?.amounts, ...b?.amounts }).every((resource) => a?.amounts[resource] === b?.amounts[resource]);

/** `changed` is called after each change of a sum, with the guest whose it is. */
export function trackUsage(cache: Cache<Pod>, changed: (guest: Guest | undefined) => void): PlacedUsage {
  const counted = new Map<string, Counted>();
  const totals = new Map<string, Record<string, bigint>>();
  const add = ({ holder, amounts }: Counted, sign: 1n | -1n): void => {
    const total = totals.get(holder) ?? {};
    totals.set(holder, total);
    for (const [resource, amount] of Object.entries(amounts)) {
      const sum = (ownMember(total, resource) ?? 0n) + sign * amount;
      if (sum === 0n) delete total[resource];
      else total[resource] = sum;
    }
    if (Object.keys(total).length === 0) totals.delete(holder);
  };
  cache.subscribe(({ before: was, after }) => {
    const object = after ?? was;
    if (object === undefined) return;
    const key = keyOf(object);
    const pod = cache.get(object.metadata as { name: string; namespace?: string });
    const node = pod?.spec?.nodeName;
    const guest = guestOf(pod ?? object);
    const holder = guest === undefined ? node : JSON.stringify(guest);
    const now = pod?.spec && node && holder ? { holder, amounts: podUsage(pod.spec) } : undefined;
    const before = counted.get(key);
    if (isSame(before, now)) return;
    if (before !== undefined) add(before, -1n);
    counted.delete(key);
    if (now !== undefined) {
      add(now, 1n);
      counted.set(key, now);
    }
    changed(guest);
  });
  return {
    own: (node) => ({ ...totals.get(node) }),
    guests: () =>
      [...totals].flatMap(([holder, amounts]) =>
        holder.startsWith('{') ? [{ ...(JSON.parse(holder) as Guest), amounts: { ...amounts } }] : [],
      ),
  };
}

/**
 * What pods take whose slice is gone or has its grant no more; `granted`: the creators that have one. Without it a consumer that deletes slices would get
 * the same share again and again.
 */
export const leftBehind = (
  { guests }: Pick<PlacedUsage, 'guests'>,
  granted: ReadonlySet<string>,
): readonly (Guest & { readonly resources: Record<string, string> })[] =>
  guests()
    .filter(({ creator }) => !granted.has(creator))
    .map(({ amounts, ...guest }) => ({ ...guest, resources: inWords(amounts) }));
