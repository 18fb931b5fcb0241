/** The condition of a claim that waits for a volume on a virtual node and is of a class that makes volumes in this cluster only. Pure. */
import { awaitsUs, nodeOf, provisionerOf } from '#agent/storage/model/claims.ts';
import { type ConditionInput, removeCondition, setCondition } from '#kube/writes/conditions.ts';
import type { PersistentVolumeClaim } from '#shared/domain/core-kinds.ts';
import { virtualProvisioners } from '#shared/domain/storage-keys.ts';

const type = 'isthmus.dev/Provisionable';
export const notOffloaded = 'StorageNotOffloaded';

type Conditions = NonNullable<NonNullable<PersistentVolumeClaim['status']>['conditions']>;

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
  const { metadata, spec, status } = claim;
  const node = nodeOf(claim);
  const provider = node === undefined ? undefined : providerOf(node);
  if (
    // A write before kube-controller-manager's own fails that one with a conflict, and it takes the claim up again only after 15 s.
    provisionerOf(claim) === undefined ||
    awaitsUs(claim) ||
    provider === undefined ||
    metadata.deletionTimestamp !== undefined ||
    status?.phase !== 'Pending'
  )
    return undefined;
  return `a pod that uses this claim was to run on node ${node}, which is cluster ${provider}, and volumes of StorageClass ${spec?.storageClassName ?? '""'} are made in this cluster only. Use a class of provisioner ${virtualProvisioners.join(' or ')}; or set podOffloadingStrategy LocalAndRemote in the NamespaceOffloading, with which such pods stay in this cluster; then recreate claim and pods`;
}
