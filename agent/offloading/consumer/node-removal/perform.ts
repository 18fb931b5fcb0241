/** Carries out the steps by which a virtual node is emptied and removed. */

import type { KubeApi } from '#kube/model/types.ts';
import { isChangedOrGone } from '#kube/writes/changed-or-gone.ts';
import { leases, nodes, pods } from '#shared/domain/core-kinds.ts';
import { keyOf, type Pod, refOf } from '#shared/domain/kube-object.ts';
import { unreachable } from '#shared/domain/unreachable.ts';
import { AppError, codeOf } from '#shared/errors/app-error.ts';
import { messageOf } from '#shared/errors/message-of.ts';
import type { RetireAction } from './plan.ts';

/** Parallel removals of pods: an API server takes more, and a drain of thousands must not take all of it. */
const parallel = 16;

/** Refusals of evictions are kept in `blocked`, by pod key. */
export async function perform(
  actions: readonly RetireAction[],
  blocked: Map<string, string>,
  api: KubeApi,
  signal: AbortSignal,
): Promise<void> {
  const waiting = [...actions];
  const work = async (): Promise<void> => {
    for (let next = waiting.shift(); next; next = waiting.shift()) await one(next, blocked, api, signal);
  };
  await Promise.all(Array.from({ length: Math.min(parallel, actions.length) }, work));
}

async function one(
  action: RetireAction,
  blocked: Map<string, string>,
  api: KubeApi,
  signal: AbortSignal,
): Promise<void> {
  switch (action.do) {
    case 'cordon':
      return;
    case 'evict':
      return evict(action.pod, blocked, api, signal);
    case 'delete': {
      const grace = action.graceless ? { gracePeriodSeconds: 0 } : {};
      await api.delete(pods, refOf(action.pod), { ...uidOf(action.pod), ...grace }, signal);
      return;
    }
    case 'deleteNode': {
      const { name, uid } = action.node.metadata;
      await api.delete(nodes, { name }, uid === undefined ? {} : { uid }, signal);
      await api.delete(leases, { namespace: 'kube-node-lease', name }, {}, signal);
      return;
    }
    default:
      return unreachable(action);
  }
}

const uidOf = ({ metadata }: Pod): { uid?: string } => (metadata.uid === undefined ? {} : { uid: metadata.uid });

/** Through the eviction API, so that PodDisruptionBudgets are heard. A pod that is gone already is evicted. */
async function evict(pod: Pod, blocked: Map<string, string>, api: KubeApi, signal: AbortSignal): Promise<void> {
  const ref = refOf(pod);
  const body = {
    apiVersion: 'policy/v1',
    kind: 'Eviction',
    metadata: ref,
    deleteOptions: { preconditions: uidOf(pod) },
  };
  try {
    await api.post(pods, ref, 'eviction', body, signal);
    blocked.delete(keyOf(pod));
  } catch (error) {
    if (isChangedOrGone(error)) return;
    const code = codeOf(error);
    if (code !== 'kube_throttled' && code !== 'kube_failed' && code !== 'kube_forbidden') throw error;
    blocked.set(keyOf(pod), budgetOf(error));
  }
}

/** The API server names the budget only in the causes of its answer. */
function budgetOf(error: unknown): string {
  const message = messageOf(error);
  const causes = error instanceof AppError ? error.detail.causes : undefined;
  const [cause] = Array.isArray(causes) ? (causes as { message?: string }[]) : [];
  return cause?.message ?? message;
}
