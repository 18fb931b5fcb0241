/** Which nodes take the pods of guests, by their taints. Pure. */
import { matchesAny } from './key-patterns.ts';
import type { Node } from './kube-object.ts';

/** Kubernetes sets and removes these by itself; what they say is also in the node's conditions, or over in a moment. */
const passing = new Set([
  ...['not-ready', 'unreachable', 'memory-pressure', 'disk-pressure', 'pid-pressure', 'network-unavailable'].map(
    (one) => `node.kubernetes.io/${one}`,
  ),
  'node.cloudprovider.kubernetes.io/uninitialized',
]);

/** Whether an administrator keeps guests off the node: it is cordoned, or has a taint whose key is not among `tolerated`. */
export const isKeptFree = ({ spec }: Node, tolerated: readonly string[] = []): boolean =>
  spec?.unschedulable === true ||
  (spec?.taints ?? []).some(
    ({ key, effect }) => effect !== 'PreferNoSchedule' && !passing.has(key) && !matchesAny(tolerated, key),
  );
