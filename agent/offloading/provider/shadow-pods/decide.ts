/** What to do about one ShadowPod and the pod of its name, from what is. Pure. */
import { isFinished } from '#agent/offloading/provider/model/pod-phase.ts';
import type { Pod } from '#shared/domain/kube-object.ts';
import { label } from '#shared/domain/liqo-keys.ts';
import type { ShadowPod, ShadowPodPhase } from '#shared/schema/liqo/shadow-pod.ts';
import { ownerUid } from '../model/pod-owner.ts';
import { debugPatch, type JsonPatch, metadataPatch, resizePatch, specPatch } from './pod-object.ts';

export interface Observed {
  readonly shadow?: ShadowPod;
  /** The pod of that name that carries our label, if any. */
  readonly pod?: Pod;
  /** The consumer that this namespace is mapped to; undefined when there is none. */
  readonly namespaceOrigin?: string;
}

export type Decision =
  | { readonly do: 'nothing' }
  /** Make the pod; `confirm` with the API server first, since caches lag. */
  | { readonly do: 'create' }
  | { readonly do: 'delete'; readonly pod: Pod; readonly because: 'orphaned' | 'replaced' }
  | {
      readonly do: 'follow';
      readonly pod: Pod;
      readonly metadata?: { readonly metadata: Record<string, unknown> };
      readonly spec: JsonPatch;
      /** For the subresources of the same name. */
      readonly resize?: JsonPatch;
      readonly ephemeralcontainers?: JsonPatch;
      readonly phase?: ShadowPodPhase;
    }
  | { readonly do: 'refuse'; readonly reason: string; readonly message: string };

const phases: readonly ShadowPodPhase[] = ['Pending', 'Running', 'Succeeded', 'Failed', 'Unknown'];

export function decide({ shadow, pod, namespaceOrigin }: Observed): Decision {
  const going = pod?.metadata.deletionTimestamp !== undefined;
  if (!shadow || shadow.metadata.deletionTimestamp) {
    // A pod that merely carries the label, without a ShadowPod as its owner, is not ours.
    if (!pod || going || ownerUid(pod) === undefined) return { do: 'nothing' };
    return { do: 'delete', pod, because: 'orphaned' };
  }
  if (pod && ownerUid(pod) !== shadow.metadata.uid) {
    if (ownerUid(pod) === undefined) return refusal(shadow);
    return going ? { do: 'nothing' } : { do: 'delete', pod, because: 'replaced' };
  }
  if (!pod) return isFinished(shadow) ? { do: 'nothing' } : validateCreation(shadow, namespaceOrigin);
  if (isFinished(shadow)) return { do: 'nothing' };
  const phase = phaseOf(shadow, pod);
  const metadata = going ? undefined : metadataPatch(shadow, pod);
  const resize = going ? [] : resizePatch(shadow, pod);
  const ephemeralcontainers = going ? [] : debugPatch(shadow, pod);
  return {
    do: 'follow',
    pod,
    spec: going ? [] : specPatch(shadow, pod),
    ...(resize.length > 0 && { resize }),
    ...(ephemeralcontainers.length > 0 && { ephemeralcontainers }),
    ...(metadata && { metadata }),
    ...(phase !== undefined && { phase }),
  };
}

const refusal = ({ metadata }: ShadowPod): Decision => ({
  do: 'refuse',
  reason: 'FailedCreatePod',
  message: `a pod named ${metadata.name} exists here and was not made for this ShadowPod: it is left alone`,
});

function validateCreation({ metadata }: ShadowPod, namespaceOrigin: string | undefined): Decision {
  const origin = metadata.labels?.[label.origin];
  if (origin !== undefined && origin === namespaceOrigin) return { do: 'create' };
  return {
    do: 'refuse',
    reason: 'FailedCreatePod',
    message: `label ${label.origin} is ${origin ?? 'missing'}, but the namespace is that of ${namespaceOrigin ?? 'no consumer'}`,
  };
}

/**
 * The phase to report, if it is another. A pod that was deleted here ends as Failed or Succeeded on its way out; that is not its result,
 * and reporting it would keep the pod from being made again. Only work that says it completed counts.
 */
function phaseOf(shadow: ShadowPod, pod: Pod): ShadowPodPhase | undefined {
  const phase = phases.find((known) => known === pod.status?.phase) ?? 'Unknown';
  if (pod.metadata.deletionTimestamp) {
    const completed = phase === 'Succeeded' && (pod.spec?.restartPolicy ?? 'Always') !== 'Always';
    if ((phase === 'Failed' || phase === 'Succeeded') && !completed) return undefined;
  }
  return shadow.status?.phase === phase ? undefined : phase;
}
