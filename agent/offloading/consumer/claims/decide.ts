/** The condition of a claim that waits for a volume on a virtual node: storage is not offloaded, so no volume will be made. Pure. */
import { type ConditionInput, removeCondition, setCondition } from '#kube/writes/conditions.ts';
import type { PersistentVolumeClaim } from '#shared/domain/core-kinds.ts';

/** By the scheduler, when the class waits for a first consumer: the node for whose pods the volume is to be made. */
export const selectedNode = 'volume.kubernetes.io/selected-node';
const type = 'isthmus.dev/Provisionable';
export const notOffloaded = 'StorageNotOffloaded';

type Conditions = NonNullable<NonNullable<PersistentVolumeClaim['status']>['conditions']>;

export const nodeOf = ({ metadata }: PersistentVolumeClaim): string | undefined => metadata.annotations?.[selectedNode];

export interface Verdict {
  /** The list as it should be; undefined: as it is. */
  readonly conditions?: Conditions;
  /** For the user; undefined: nothing is in the way. */
  readonly message?: string;
}

/** `providerOf`: the cluster that a virtual node stands for; undefined for all other nodes. */
export function decide(
  claim: PersistentVolumeClaim,
  providerOf: (node: string) => string | undefined,
  nowMs: number,
): Verdict {
  const message = inTheWay(claim, providerOf);
  const have = (claim.status?.conditions ?? []) as Parameters<typeof setCondition>[0] & Conditions;
  const input: ConditionInput = { type, status: 'False', reason: notOffloaded, message: message ?? '' };
  const next = message === undefined ? removeCondition(have, type) : setCondition(have, input, nowMs);
  return {
    ...(next === have ? {} : { conditions: next as Conditions }),
    ...(message === undefined ? {} : { message }),
  };
}

function inTheWay(claim: PersistentVolumeClaim, providerOf: (node: string) => string | undefined): string | undefined {
  const { metadata, status } = claim;
  const node = nodeOf(claim);
  const provider = node === undefined ? undefined : providerOf(node);
  if (provider === undefined || metadata.deletionTimestamp !== undefined || status?.phase !== 'Pending')
    return undefined;
  return `a pod that uses this claim was to run on node ${node}, which is cluster ${provider}, and storage is not offloaded: no volume will be made there. With podOffloadingStrategy LocalAndRemote in the NamespaceOffloading, pods with claims stay in this cluster: set it, then recreate claim and pods; or give the pods an emptyDir`;
}
