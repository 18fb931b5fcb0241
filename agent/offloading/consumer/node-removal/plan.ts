/** How a virtual node is emptied and removed: which step comes next, and what the user reads meanwhile (docs/design/offloading.md#how-is-a-virtual-node-removed). Pure. */
import type { Node, Pod } from '#shared/domain/kube-object.ts';

export interface RetireObserved {
  /** The Node, if it is there and ours. */
  readonly node?: Node | undefined;
  /** All local pods bound to it. */
  readonly pods: readonly Pod[];
  /** What is left at the provider; undefined while that is not known. */
  readonly left?: { readonly shadows: number; readonly pods: number; readonly first?: string } | undefined;
  /** The VirtualNode itself goes (and not only its Node): then nothing may be left at the provider either. */
  readonly final: boolean;
  /** The provider is not waited for any more: it was declared dead, or there is no identity to reach it with. */
  readonly abandoned: boolean;
  /** Since the drain began. */
  readonly ageMs: number;
  /** Last refusal of an eviction, by pod key. */
  readonly blocked: ReadonlyMap<string, string>;
}

export interface RetireLimits {
  /** After this, pods are deleted even against their disruption budgets. */
  readonly budgetsMs: number;
  /** After this, neither graceful ends nor the provider are waited for. */
  readonly forceMs: number;
}

export type RetireAction =
  | { readonly do: 'cordon' }
  | { readonly do: 'evict'; readonly pod: Pod }
  | { readonly do: 'delete'; readonly pod: Pod; readonly graceless: boolean }
  | { readonly do: 'deleteNode'; readonly node: Node };

export interface RetirePlan {
  readonly actions: readonly RetireAction[];
  readonly phase: 'Draining' | 'Deleting';
  readonly message: string;
  readonly done: boolean;
  /** When nothing happens by itself: look again after so long. */
  readonly againMs: number;
}

const isTerminating = (pod: Pod): boolean => pod.metadata.deletionTimestamp !== undefined;
const keyOfPod = ({ metadata }: Pod): string => `${metadata.namespace}/${metadata.name}`;
/** A DaemonSet makes its pods again at once, as long as there is a Node for them. */
const isOfDaemonSet = (pod: Pod): boolean =>
  pod.metadata.ownerReferences?.some(({ kind, controller }) => kind === 'DaemonSet' && controller) ?? false;

const blockedAgainMs = 1_000;
const patienceMs = 5_000;

export function retire(observed: RetireObserved, limits: RetireLimits): RetirePlan {
  const { node, pods, final, abandoned, ageMs } = observed;
  const force = abandoned || ageMs >= limits.forceMs;
  const evictable = pods.filter((pod) => !isOfDaemonSet(pod));
  if (node && evictable.length > 0) return draining(observed, evictable, force, limits);
  if (node) return step([{ do: 'deleteNode', node }], 'Deleting', 'removing the Node', patienceMs);
  // Without the Node the scheduler places no pods here; left are pods of DaemonSets and late arrivals.
  const actions = pods.flatMap((pod): RetireAction[] =>
    isTerminating(pod) && !force ? [] : [{ do: 'delete', pod, graceless: true }],
  );
  const message = remaining(observed, force);
  if (message === undefined) return { actions, phase: 'Deleting', message: 'done', done: true, againMs: 0 };
  return step(actions, final ? 'Deleting' : 'Draining', message, patienceMs);
}

const step = (
  actions: readonly RetireAction[],
  phase: RetirePlan['phase'],
  message: string,
  againMs: number,
): RetirePlan => ({ actions, phase, message, done: false, againMs });

function draining(
  { node, ageMs, blocked, abandoned }: RetireObserved,
  pods: readonly Pod[],
  force: boolean,
  limits: RetireLimits,
): RetirePlan {
  const overdue = ageMs >= limits.budgetsMs;
  const cordon: RetireAction[] = node?.spec?.unschedulable ? [] : [{ do: 'cordon' }];
  const removals = pods.flatMap((pod): RetireAction[] => {
    if (force) return [{ do: 'delete', pod, graceless: true }];
    if (isTerminating(pod)) return [];
    return [overdue ? { do: 'delete', pod, graceless: false } : { do: 'evict', pod }];
  });
  const obstacles = pods.flatMap((pod) => {
    const why = isTerminating(pod) ? undefined : blocked.get(keyOfPod(pod));
    return why === undefined ? [] : [`${keyOfPod(pod)}: ${why}`];
  });
  const [obstacle] = obstacles;
  const names = pods.slice(0, 3).map(keyOfPod).join(', ');
  const count = `${pods.length} ${pods.length === 1 ? 'pod is' : 'pods are'} left (${names}${pods.length > 3 ? ', …' : ''})`;
  const how = abandoned
    ? '; the provider is not waited for'
    : force
      ? '; the deadline has passed, they are deleted without grace'
      : overdue
        ? '; the deadline for disruption budgets has passed'
        : obstacle === undefined
          ? ''
          : `; blocked: ${obstacle}`;
  const timers = [limits.budgetsMs, limits.forceMs].map((limit) => limit - ageMs).filter((ms) => ms > 0);
  const againMs = Math.min(obstacle === undefined ? patienceMs : blockedAgainMs, ...timers);
  return step([...cordon, ...removals], 'Draining', `${count}${how}`, Math.max(100, againMs));
}

/** What still has to go, for people; undefined when nothing has, or when it is not waited for. */
function remaining({ pods, left, final }: RetireObserved, force: boolean): string | undefined {
  if (pods.length > 0) return `${pods.length} pods are being removed (${pods.slice(0, 3).map(keyOfPod).join(', ')})`;
  if (!final || force) return undefined;
  if (left === undefined) return 'waiting to hear from the provider what is left there';
  if (left.shadows + left.pods === 0) return undefined;
  return `${left.shadows} ShadowPods and ${left.pods} pods are left at the provider (${left.first})`;
}
