/** What the pods of an offloaded namespace get at creation: the toleration of virtual nodes and the affinity of the strategy. Pure. */
import type { PatchOperation } from '#agent/admission/review.ts';
import { ownerName } from '#kube/writes/owner-references.ts';
import type { Pod } from '#shared/domain/kube-object.ts';
import { isthmusLabel, label, offloadingGate, virtualNodeTaint, virtualNodeType } from '#shared/domain/liqo-keys.ts';
import { bothTerms, inPod, type NodeSelectorTerm } from '#shared/domain/node-selector.ts';
import { moveGate } from '#shared/domain/storage-keys.ts';
import { volumeMoves } from '#shared/schema/isthmus/volume-move.ts';
import type { NamespaceOffloading, NamespaceOffloadingSpec } from '#shared/schema/liqo/namespace-offloading.ts';
import { isGated, waitsFor } from '../scheduling-gate/decide.ts';

type Toleration = NonNullable<NonNullable<Pod['spec']>['tolerations']>[number];
type Requirement = NonNullable<NodeSelectorTerm['matchExpressions']>[number];
type Policy = Pick<NamespaceOffloadingSpec, 'podOffloadingStrategy' | 'clusterSelector'>;

const toleration: Toleration = { key: virtualNodeTaint.key, operator: 'Exists', effect: virtualNodeTaint.effect };
const isVirtual = { key: label.type, operator: 'In', values: [virtualNodeType] };
const isNotVirtual = { key: label.type, operator: 'NotIn', values: [virtualNodeType] };
/** A pod with this runtime class chose virtual nodes for itself. */
const ownRuntimeClass = 'liqo';

/** The terms that the namespace's policy adds to every pod; empty: none. */
export function imposedTerms({ podOffloadingStrategy, clusterSelector }: Policy): NodeSelectorTerm[] {
  const terms = inPod(clusterSelector?.nodeSelectorTerms ?? []);
  switch (podOffloadingStrategy) {
    case 'Local':
      return [];
    case 'Remote':
      if (terms.length === 0) return [{ matchExpressions: [isVirtual] }];
      return bothTerms(terms, [{ matchExpressions: [isVirtual] }]);
    case 'LocalAndRemote':
      return terms.length === 0 ? [] : [...terms, { matchExpressions: [isNotVirtual] }];
  }
}

/** Forever, not for a number of seconds. */
const tolerates = ({ key, operator, value, effect, tolerationSeconds }: Toleration): boolean =>
  tolerationSeconds == null &&
  (!effect || effect === virtualNodeTaint.effect) &&
  (operator === 'Exists'
    ? !key || key === virtualNodeTaint.key
    : key === virtualNodeTaint.key && value === virtualNodeTaint.value);

/**
 * What is known of the claims that a pod uses. `movable`: their volumes may be at a provider. `open`: one of them has no volume yet, so it decides
 * where it is made. `moving`: one of them is about to get another volume. `sources`: where the data is, by cluster ID, that claims without a volume are
 * to begin as copies of; `here` stands for this cluster.
 */
export interface Claims {
  readonly movable: boolean;
  readonly open: boolean;
  readonly moving: boolean;
  readonly sources?: readonly (string | typeof here)[];
}

export const here = Symbol('this cluster');

const noClaims: Claims = { movable: true, open: false, moving: false };
/** Virtual nodes say so themselves; others do not have the label. */
const hasStorage = { key: label.storageAvailable, operator: 'NotIn', values: ['false'] };

/** As the pod says itself; where it says nothing, it is for Linux. */
const isForWindows = ({ spec }: Pod): boolean =>
  spec?.os?.name === 'windows' || spec?.nodeSelector?.['kubernetes.io/os'] === 'windows';

/** Providers run pods for Linux. What is said about one that is not: `refusal` where it has to run there, `warning` where it stays here. */
export function windowsProblem(pod: Pod, { podOffloadingStrategy }: Policy): { refusal?: string; warning?: string } {
  if (!isForWindows(pod)) return {};
  const what = 'the pod is for Windows (spec.os.name or its node selector), and pods of virtual nodes are for Linux';
  // The class selects virtual nodes and tolerates their taint in any namespace.
  if (pod.spec?.runtimeClassName === ownRuntimeClass)
    return { refusal: `${what}: leave out spec.runtimeClassName ${ownRuntimeClass}, which is for virtual nodes only` };
  if (podOffloadingStrategy === 'Local') return {};
  return podOffloadingStrategy === 'Remote'
    ? { refusal: `${what}: accepted here with the strategies LocalAndRemote and Local of the namespace's offloading` }
    : { warning: `${what}: it stays on nodes of this cluster` };
}

/** With strategy Remote no node is left for data of this cluster: then the claim says why, which no affinity does. */
function besides(at: string | typeof here, strategy: Policy['podOffloadingStrategy']): Requirement[] {
  if (at !== here) return [{ key: label.remoteClusterId, operator: 'In', values: [at] }];
  return strategy === 'Remote' ? [] : [isNotVirtual];
}

/** The smallest patch: nothing that the pod has is written again, so no field can be lost. */
export function podPatch(pod: Pod, policy: Policy, claims: Claims = noClaims): PatchOperation[] {
  const { podOffloadingStrategy: strategy } = policy;
  if (strategy === 'Local' || pod.spec?.runtimeClassName === ownRuntimeClass) return [];
  // The scheduler does not know that such volumes cannot be reached from there.
  if (strategy === 'LocalAndRemote' && (!claims.movable || isForWindows(pod)))
    return affinityPatch(pod, [{ matchExpressions: [isNotVirtual] }]);
  const imposed = imposedTerms(policy);
  const ofSources = (claims.sources ?? []).flatMap((at) => besides(at, strategy));
  const expressions = claims.open && claims.movable ? [hasStorage, ...ofSources] : [];
  const storage = expressions.length > 0 ? [{ matchExpressions: expressions }] : [];
  const terms = imposed.length === 0 || storage.length === 0 ? [...imposed, ...storage] : bothTerms(imposed, storage);
  return [...tolerationPatch(pod.spec?.tolerations), ...affinityPatch(pod, terms)];
}

/** A pod that could run nowhere yet, or whose claim is being moved, waits behind our gates; one that is bound already cannot. */
export function gatePatch(pod: Pod, offloading: NamespaceOffloading, claims: Claims = noClaims): PatchOperation[] {
  const { nodeName, runtimeClassName } = pod.spec ?? {};
  if (nodeName) return [];
  const waits = runtimeClassName !== ownRuntimeClass && !isGated(pod) && waitsFor(offloading) !== undefined;
  const isMover = ownerName(volumeMoves, pod) !== undefined;
  const present = pod.spec?.schedulingGates ?? [];
  const added = [
    ...(waits ? [{ name: offloadingGate, marked: isthmusLabel.gated }] : []),
    ...(claims.moving && !isMover ? [{ name: moveGate, marked: isthmusLabel.waitsForMove }] : []),
  ].filter(({ name }) => !present.some((gate) => gate.name === name));
  if (added.length === 0) return [];
  const wanted = [...present, ...added.map(({ name }) => ({ name }))];
  const labels = { ...pod.metadata.labels, ...Object.fromEntries(added.map(({ marked }) => [marked, 'true'])) };
  return [
    { op: 'add', path: '/spec/schedulingGates', value: wanted },
    { op: 'add', path: '/metadata/labels', value: labels },
  ];
}

function tolerationPatch(tolerations: readonly Toleration[] | undefined): PatchOperation[] {
  if (!tolerations) return [{ op: 'add', path: '/spec/tolerations', value: [toleration] }];
  return tolerations.some(tolerates) ? [] : [{ op: 'add', path: '/spec/tolerations/-', value: toleration }];
}

function affinityPatch(pod: Pod, imposed: readonly NodeSelectorTerm[]): PatchOperation[] {
  if (imposed.length === 0) return [];
  const affinity = pod.spec?.affinity;
  const required = affinity?.nodeAffinity?.requiredDuringSchedulingIgnoredDuringExecution;
  const own = required?.nodeSelectorTerms ?? [];
  const selector = { nodeSelectorTerms: own.length === 0 ? imposed : bothTerms(own, imposed) };
  const key = 'requiredDuringSchedulingIgnoredDuringExecution';
  if (!affinity) return [{ op: 'add', path: '/spec/affinity', value: { nodeAffinity: { [key]: selector } } }];
  if (!affinity.nodeAffinity) return [{ op: 'add', path: '/spec/affinity/nodeAffinity', value: { [key]: selector } }];
  return [{ op: 'add', path: `/spec/affinity/nodeAffinity/${key}`, value: selector }];
}
