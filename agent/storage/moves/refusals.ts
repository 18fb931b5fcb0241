/** Why a volume cannot be moved as asked, found before anything changes. Pure. */
import type { PersistentVolume, PersistentVolumeClaim, StorageClass } from '#shared/domain/core-kinds.ts';
import type { Pod } from '#shared/domain/kube-object.ts';
import { moveFinalizer, virtualProvisioner, virtualProvisioners } from '#shared/domain/storage-keys.ts';
import { isOurVolume, remoteOf } from '#shared/domain/volumes.ts';
import { localTarget, type VolumeMove } from '#shared/schema/isthmus/volume-move.ts';
import type { NamespaceOffloading } from '#shared/schema/liqo/namespace-offloading.ts';
import type { VirtualNode } from '#shared/schema/liqo/virtual-node.ts';
import { type Target, targetOf } from '../binding/target.ts';
import { selectedNode } from '../model/claims.ts';
import type { Place } from '../model/place.ts';
import { noteOf, stagingClaim } from './objects.ts';
import { usersOf, whyNotStoppable } from './pods.ts';

export interface Circumstances {
  readonly move: VolumeMove;
  /** Of the namespace. */
  readonly claims: readonly PersistentVolumeClaim[];
  readonly pods: readonly Pod[];
  readonly volume: PersistentVolume | undefined;
  readonly classes: readonly StorageClass[];
  readonly offloading: NamespaceOffloading | undefined;
  readonly virtualNodes: readonly VirtualNode[];
  /** How the namespace stands at a provider; undefined: it does not answer. */
  readonly place: (provider: string) => Place | undefined;
  readonly image: string | undefined;
}

const listed = (names: readonly string[]): string => [...new Set(names)].sort().join(', ') || 'none';

export function refusalOf(circumstances: Circumstances): string | undefined {
  const { move, claims, pods, image } = circumstances;
  const { name, namespace } = move.metadata;
  const claim = claims.find(({ metadata }) => metadata.name === name);
  if (claim === undefined)
    return `claim ${name} does not exist in namespace ${namespace}: accepted is one of ${listed(claims.map(({ metadata }) => metadata.name))}`;
  return (
    ofClaim(claim, circumstances) ??
    ofNamespace(circumstances) ??
    ofTarget(claim, circumstances) ??
    usersOf(pods, move)
      .map(whyNotStoppable)
      .map((why) => (why === undefined ? undefined : `claim ${name}: ${why}`))
      .find((why) => why !== undefined) ??
    (image === undefined
      ? 'the image of this agent cannot be read from its pod: name one for the pods that copy in spec.image (--image)'
      : undefined)
  );
}

function ofClaim({ metadata, spec }: PersistentVolumeClaim, { volume }: Circumstances): string | undefined {
  const { name } = metadata;
  if (metadata.deletionTimestamp !== undefined) return `claim ${name} is being deleted`;
  if (metadata.finalizers?.includes(moveFinalizer)) return `claim ${name} is being moved already`;
  const pod = metadata.ownerReferences?.find(({ kind }) => kind === 'Pod');
  if (pod) return `claim ${name} is of a generic ephemeral volume: it goes with pod ${pod.name}`;
  if (spec?.volumeName === undefined || volume === undefined)
    return `claim ${name} has no volume yet: its first pod decides where it is made`;
  if (!isOurVolume(volume))
    return `claim ${name} is of StorageClass ${spec.storageClassName ?? '""'}, whose volumes Isthmus does not make: accepted are claims of classes with provisioner ${virtualProvisioners.join(' or ')}`;
  return undefined;
}

const sidesOf = ({ volume, move }: Circumstances) => ({
  from: (volume && remoteOf(volume)?.provider) ?? localTarget,
  to: move.spec.target,
});

function ofNamespace(circumstances: Circumstances): string | undefined {
  const { offloading, move, place } = circumstances;
  const { namespace } = move.metadata;
  if (offloading === undefined || offloading.metadata.deletionTimestamp !== undefined)
    return `namespace ${namespace} is not offloaded, so no pod of it can copy to another cluster: isthmus offload namespace ${namespace}`;
  const { from, to } = sidesOf(circumstances);
  if (from === to)
    return `the volume of claim ${move.metadata.name} is in ${to === localTarget ? 'this cluster' : `cluster ${to}`} already`;
  const { podOffloadingStrategy: strategy } = offloading.spec;
  if (strategy === 'Local')
    return `namespace ${namespace} is offloaded with strategy Local: its pods run in this cluster alone`;
  if (strategy === 'Remote' && (from === localTarget || to === localTarget))
    return `namespace ${namespace} is offloaded with strategy Remote: no pod of it can copy in this cluster; accepted is LocalAndRemote`;
  const known = circumstances.virtualNodes.map(({ spec }) => spec.clusterID);
  for (const side of [to, from].filter((one) => one !== localTarget)) {
    if (!known.includes(side))
      return `cluster ${side} is no provider of this cluster: accepted is one of ${listed([localTarget, ...known])}`;
    const there = place(side);
    if (there === undefined) return `cluster ${side} does not answer now: try again when \`isthmus status\` shows it`;
    if (there.kind === 'held') return `cluster ${side} cannot be used now: ${there.why}`;
    if (there.kind === 'none')
      return `namespace ${namespace} is not offloaded to cluster ${side}: see its clusterSelector`;
  }
  return undefined;
}

/** The class that the copy gets; as the first pod of a claim would find it. */
export function classFor(
  claim: PersistentVolumeClaim,
  { move, classes, virtualNodes }: Pick<Circumstances, 'move' | 'classes' | 'virtualNodes'>,
): Target {
  const { target } = move.spec;
  const staging = stagingClaim(move, noteOf(claim), undefined);
  const annotations = {
    ...staging.metadata.annotations,
    [selectedNode]: target,
    'volume.kubernetes.io/storage-provisioner': virtualProvisioner,
  };
  const offered = virtualNodes.find(({ spec }) => spec.clusterID === target)?.spec.storageClasses;
  return targetOf(
    { ...staging, metadata: { ...staging.metadata, annotations } },
    {
      classes,
      nodeOf: () => (target === localTarget ? { kind: 'real' } : { kind: 'virtual', provider: target, offered }),
    },
  );
}

function ofTarget(claim: PersistentVolumeClaim, circumstances: Circumstances): string | undefined {
  const found = classFor(claim, circumstances);
  if (found.kind === 'refused' || found.kind === 'elsewhere') return found.message;
  return found.kind === 'none'
    ? `StorageClass ${claim.spec?.storageClassName} of claim ${claim.metadata.name} is gone or is no virtual class any more`
    : undefined;
}
