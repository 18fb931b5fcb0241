/** What the pods of this cluster itself request, by node, kept up to date as pods come and go: asking costs the same however many there are. */
import type { Cache, Caches, Transform } from '#kube/model/types.ts';
import { pods } from '#shared/domain/core-kinds.ts';
import { keyOf, type Pod } from '#shared/domain/kube-object.ts';
import { label, managedByShadowPod } from '#shared/domain/liqo-keys.ts';
import { type Amounts, podUsage, showAmount } from '#shared/domain/pod-resources.ts';

/** Of a pod only where it is and what it takes; the sum stands in `spec.resources`, which counts instead of the containers. */
const slimPod: Transform<Pod> = ({ apiVersion, kind, metadata, spec }) => {
  const { pods: _one, ...requests } = podUsage(spec ?? { containers: [] });
  const { name, namespace, uid, resourceVersion } = metadata;
  return {
    apiVersion,
    kind,
    metadata: {
      name,
      ...(namespace !== undefined && { namespace }),
      ...(uid !== undefined && { uid }),
      ...(resourceVersion !== undefined && { resourceVersion }),
    },
    spec: {
      containers: [],
      ...(spec?.nodeName !== undefined && { nodeName: spec.nodeName }),
      resources: {
        requests: Object.fromEntries(Object.entries(requests).map(([key, of]) => [key, showAmount(key, of)])),
      },
    },
  } as Pod;
};

/** Pods that have a node and have not ended, except guests'. */
export const ownPods = (caches: Caches): Cache<Pod> =>
  caches.cache(pods, {
    labelSelector: `${label.managedBy}!=${managedByShadowPod}`,
    fieldSelector: 'spec.nodeName!=,status.phase!=Succeeded,status.phase!=Failed',
    transform: slimPod,
  });

interface Counted {
  readonly node: string;
  readonly amounts: Amounts;
}

const isSame = (a: Counted | undefined, b: Counted | undefined): boolean =>
  a?.node === b?.node &&
  Object.keys({ ...a?.amounts, ...b?.amounts }).every((resource) => a?.amounts[resource] === b?.amounts[resource]);

/** `changed` is called after each change of a sum. */
export function trackOwnUsage(cache: Cache<Pod>, changed: () => void): (node: string) => Amounts {
  const counted = new Map<string, Counted>();
  const totals = new Map<string, Record<string, bigint>>();
  const add = ({ node, amounts }: Counted, sign: 1n | -1n): void => {
    const total = totals.get(node) ?? {};
    totals.set(node, total);
    for (const [resource, amount] of Object.entries(amounts)) {
      const sum = (total[resource] ?? 0n) + sign * amount;
      if (sum === 0n) delete total[resource];
      else total[resource] = sum;
    }
    if (Object.keys(total).length === 0) totals.delete(node);
  };
  cache.subscribe(({ before: was, after }) => {
    const object = after ?? was;
    if (object === undefined) return;
    const key = keyOf(object);
    const pod = cache.get(object.metadata as { name: string; namespace?: string });
    const node = pod?.spec?.nodeName;
    const now = pod?.spec && node ? { node, amounts: podUsage(pod.spec) } : undefined;
    const before = counted.get(key);
    if (isSame(before, now)) return;
    if (before !== undefined) add(before, -1n);
    counted.delete(key);
    if (now !== undefined) {
      add(now, 1n);
      counted.set(key, now);
    }
    changed();
  });
  return (node) => ({ ...totals.get(node) });
}
