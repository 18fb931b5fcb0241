/** Why a pod of a consumer is where it is, what it waits for and at which side. Pure. */
import type { Node, Pod } from '#shared/domain/kube-object.ts';
import { isthmusAnnotation, label, virtualNodeTaint } from '#shared/domain/liqo-keys.ts';
import { isVirtualNode } from '#shared/domain/virtual-nodes.ts';
import type { NamespaceOffloading } from '#shared/schema/liqo/namespace-offloading.ts';

export interface PodFacts {
  readonly pod: Pod;
  /** The node it is bound to, when that exists. */
  readonly node?: Node | undefined;
  readonly offloading?: NamespaceOffloading | undefined;
  /** All virtual nodes of this cluster. */
  readonly virtualNodes: readonly Node[];
}

export interface PodStory {
  readonly pod: string;
  readonly phase: string;
  readonly where: string;
  readonly why: string;
  /** Absent: it waits for nothing. */
  readonly waitsFor?: string;
  readonly side?: 'consumer' | 'provider' | 'link';
  readonly todo?: string;
}

type Waiting = Pick<PodStory, 'waitsFor' | 'side' | 'todo'>;
type Conditioned = { readonly status?: { readonly conditions?: readonly { type: string; status: string }[] } };

const conditionOf = <T extends Conditioned>(object: T | undefined, type: string) =>
  object?.status?.conditions?.find((condition) => condition.type === type) as
    | { readonly type: string; readonly status: string; readonly reason?: string; readonly message?: string }
    | undefined;
const tolerates = (pod: Pod): boolean =>
  pod.spec?.tolerations?.some(({ key, operator }) => key === virtualNodeTaint.key || (!key && operator === 'Exists')) ??
  false;

export function explainPod(facts: PodFacts): PodStory {
  const { pod, node } = facts;
  const base = { pod: `${pod.metadata.namespace}/${pod.metadata.name}`, phase: pod.status?.phase ?? 'Pending' };
  if (pod.spec?.nodeName === undefined) return { ...base, ...unscheduled(facts) };
  const name = pod.spec.nodeName;
  if (node === undefined) {
    return {
      ...base,
      where: `bound to node ${name}, which does not exist`,
      why: 'the node was removed while the pod was bound to it',
      waitsFor: 'the pod garbage collector of this cluster',
      side: 'consumer',
    };
  }
  if (!isVirtualNode(node)) return { ...base, where: `node ${name} of this cluster`, why: localReason(facts) };
  const provider = node.metadata.labels?.[label.remoteClusterId] ?? 'unknown';
  const remote = facts.offloading?.status?.remoteNamespaceName;
  const at = `cluster ${provider}${remote ? `, namespace ${remote}` : ''} (virtual node ${name})`;
  const strategy = facts.offloading?.spec?.podOffloadingStrategy;
  const why = strategy
    ? `its namespace is offloaded (${strategy}) and the scheduler chose this node`
    : 'it tolerates virtual nodes by itself and the scheduler chose this one; its namespace has no NamespaceOffloading';
  return { ...base, where: at, why, ...offloaded(pod, node, provider) };
}

function localReason({ pod, offloading }: PodFacts): string {
  if (!offloading) return `namespace ${pod.metadata.namespace} is not offloaded`;
  const strategy = offloading.spec?.podOffloadingStrategy;
  if (strategy === 'Local') return 'its namespace is offloaded with strategy Local: pods stay here';
  if (!tolerates(pod)) return 'it was made before its namespace was offloaded, or the webhook left it out';
  return `its namespace is offloaded (${strategy ?? 'LocalAndRemote'}); the scheduler chose a node of this cluster`;
}

function unscheduled(facts: PodFacts): Omit<PodStory, 'pod' | 'phase'> {
  const { pod, offloading, virtualNodes } = facts;
  const where = 'nowhere yet';
  const gates = pod.spec?.schedulingGates?.map(({ name }) => name) ?? [];
  const scheduled = conditionOf(pod, 'PodScheduled');
  const said = scheduled?.message ?? 'the scheduler has not looked at it';
  if (gates.length > 0) {
    const held = pod.status?.conditions?.find(({ type }) => type.startsWith('isthmus.dev/'))?.message;
    return {
      where,
      why: `it is held back by scheduling gates: ${gates.join(', ')}`,
      waitsFor: held ?? `the controller that removes ${gates.join(', ')}`,
      side: 'consumer',
      ...(offloading?.status?.offloadingPhase && {
        todo: `NamespaceOffloading is ${offloading.status.offloadingPhase}; see kubectl -n ${pod.metadata.namespace} describe namespaceoffloading offloading`,
      }),
    };
  }
  const waiting = { where, waitsFor: `the scheduler of this cluster: ${said}`, side: 'consumer' } as const;
  const strategy = offloading?.spec?.podOffloadingStrategy;
  if (!offloading) {
    const why = `namespace ${pod.metadata.namespace} is not offloaded, so only nodes of this cluster are looked at`;
    return { ...waiting, why, todo: `isthmus offload namespace ${pod.metadata.namespace} --kubeconfig FILE` };
  }
  if (strategy !== 'Local' && !tolerates(pod)) {
    const why = 'it was made before its namespace was offloaded: it does not tolerate virtual nodes';
    return { ...waiting, why, todo: 'delete the pod; its controller makes it again' };
  }
  const closed = virtualNodes.flatMap((node) => {
    const cordoned = node.spec?.taints?.some(({ key }) => key === 'isthmus.dev/cordoned') || node.spec?.unschedulable;
    const ready = conditionOf(node, 'Ready');
    if (ready?.status !== 'True') return [`${node.metadata.name} is not ready: ${ready?.message ?? 'no word from it'}`];
    return cordoned ? [`${node.metadata.name} takes no new pods`] : [];
  });
  const why =
    virtualNodes.length === 0
      ? 'this cluster has no virtual node'
      : closed.length > 0
        ? `of the virtual nodes ${closed.join('; ')}`
        : 'no node of this cluster or of a provider fits';
  return { ...waiting, why };
}

function offloaded(pod: Pod, node: Node, provider: string): Waiting {
  const ready = conditionOf(node, 'Ready');
  if (pod.metadata.deletionTimestamp !== undefined && ready?.status === 'True') {
    return { waitsFor: `cluster ${provider} to end its containers`, side: 'provider' };
  }
  if (ready?.status !== 'True') {
    const link = conditionOf(node, 'NetworkUnavailable')?.status === 'True';
    return {
      waitsFor: `node ${node.metadata.name}: ${ready?.message ?? 'it has not been heard of'}`,
      side: link || ready?.status === 'Unknown' ? 'link' : 'provider',
      todo: `kubectl describe node ${node.metadata.name}`,
    };
  }
  const { status } = pod;
  const message = status?.message ?? '';
  switch (status?.reason) {
    case 'OffloadingBackOff':
      return {
        waitsFor: message,
        side: 'provider',
        todo: `kubectl -n ${pod.metadata.namespace} describe namespaceoffloading offloading`,
      };
    case 'OffloadingRefused':
      return { waitsFor: message, side: 'provider', todo: `change the pod, or ask the administrator of ${provider}` };
    case 'OffloadingAborted':
      return {
        waitsFor: `nothing: ${message}`,
        side: 'consumer',
        todo: 'delete the pod; its controller makes it again',
      };
    default:
      return running(pod, provider);
  }
}

function running(pod: Pod, provider: string): Waiting {
  const { status } = pod;
  if (status?.phase === 'Succeeded' || status?.phase === 'Failed') return {};
  const side = 'provider';
  const scheduled = conditionOf(pod, 'PodScheduled');
  if (pod.metadata.annotations?.[isthmusAnnotation.remotePod] === undefined) {
    return { waitsFor: `cluster ${provider} to make a pod of it`, side };
  }
  if (scheduled?.status === 'False') {
    return { waitsFor: `the scheduler of cluster ${provider}: ${scheduled.message ?? scheduled.reason ?? ''}`, side };
  }
  for (const container of [...(status?.initContainerStatuses ?? []), ...(status?.containerStatuses ?? [])]) {
    const waiting = container.state?.waiting;
    if (waiting?.reason !== undefined && waiting.reason !== 'PodInitializing') {
      return {
        waitsFor: `container ${container.name}: ${[waiting.reason, waiting.message].filter(Boolean).join(', ')}`,
        side,
      };
    }
  }
  const ready = conditionOf(pod, 'Ready');
  if (ready?.status === 'True') return {};
  const words = [ready?.reason, ready?.message].filter(Boolean).join(', ');
  return { waitsFor: `its containers to be ready${words ? `: ${words}` : ''}`, side };
}

export function podStoryText(story: PodStory): string {
  const rows: readonly (readonly [string, string | undefined])[] = [
    ['Pod', story.pod],
    ['Phase', story.phase],
    ['Where', story.where],
    ['Why', story.why],
    ['Waits for', story.waitsFor ?? 'nothing'],
    ['Side', story.side],
    ['To do', story.todo],
  ];
  return rows.flatMap(([head, text]) => (text === undefined ? [] : [`${`${head}:`.padEnd(12)}${text}\n`])).join('');
}
