/**
 * Names and marks of the storage fabric: what the consumer writes on a claim at its provider, and what the provider reads there.
 * Liqo's names where Liqo has them.
 */
import { systemNamespace } from './liqo-keys.ts';

/** Provisioner of virtual StorageClasses, as Liqo has it. */
export const virtualProvisioner = 'liqo.io/storage';
/** Where the real claims of volumes stand that are bound in this cluster. */
export const storageNamespace = `${systemNamespace}-storage`;
/**
 * `spec.csi.driver` of the local PV that stands for a volume at a provider. No node has it: such a volume is never mounted by a real node.
 * Also a provisioner of virtual StorageClasses: without a slash it can name a CSIDriver, by which kube-scheduler looks for free storage.
 */
export const remoteVolumeDriver = 'storage.isthmus.dev';

/** Label of CSIStorageCapacity objects: whose they are. As external-provisioner writes it. */
export const driverLabel = 'csi.storage.k8s.io/drivername';

/** In the order in which messages name them. */
export const virtualProvisioners: readonly string[] = [virtualProvisioner, remoteVolumeDriver];
/** Undefined, as of an object that does not say: no. */
export const isVirtualProvisioner = (name: string | undefined): boolean =>
  name !== undefined && virtualProvisioners.includes(name);

/** Annotation of a PersistentVolume, by every provisioner. */
export const provisionedBy = 'pv.kubernetes.io/provisioned-by';
/** Of a PersistentVolume of ours. As sig-storage-lib-external-provisioner calls it: the volume goes only after its data. */
export const volumeFinalizer = 'external-provisioner.volume.kubernetes.io/finalizer';

/** Parameter of a virtual StorageClass: the StorageClass of volumes in the cluster itself. */
export const localClassParameter = 'localStorageClass';

export const storageAnnotation = {
  /** On a claim at the provider: `<namespace>/<name>` of the claim of the consumer that it is for. */
  claim: 'isthmus.dev/claim',
  /** On a claim at the provider: UID of that claim. Another UID is another volume. */
  claimUid: 'isthmus.dev/claim-uid',
  /** On a claim at the provider: reclaim policy of the consumer's PV, `Delete` or `Retain`. */
  reclaimPolicy: 'isthmus.dev/reclaim-policy',
  /** On a claim at the provider, value `storageData.delete`: the consumer's PV was deleted with policy Delete, so the data may go with the claim. */
  data: 'isthmus.dev/data',
  /** On a real claim: no volume of the consumer stands for it yet, so nothing was ever written by it. The value says which cluster of this name: UID of its kube-system. */
  unpublished: 'isthmus.dev/unpublished',
  /** On a claim or its PV at the consumer: the StorageClass to take at the provider, which must offer it. */
  remoteStorageClass: 'liqo.io/remote-storage-class',
  /** On a claim of the consumer: comma list of the access modes to ask for at the provider. */
  remoteAccessModes: 'liqo.io/remote-access-modes',
  /** On a claim of the consumer, `true`: another component keeps a claim of this name at the provider; pods that use it may run there. */
  externalClaim: 'isthmus.dev/external-claim',
  /** On a claim of the consumer: its volume is being moved, pods that use it wait behind `moveGate`. */
  moving: 'isthmus.dev/volume-move',
  /** On a claim of the consumer, and on the claim at the provider: the claim whose volume it is to become. The one at the provider is named after that. */
  standsFor: 'isthmus.dev/stands-for',
  /** On a PV of the consumer: UID that the real claim behind it names while the PV goes from one claim to another. */
  realClaimUid: 'isthmus.dev/real-claim-uid',
  /** On a PV of the consumer that stands for a volume at a provider: that volume, and its StorageClass there. */
  realVolume: 'isthmus.dev/real-volume',
  realStorageClass: 'isthmus.dev/real-storage-class',
  /** On a PV of the consumer that a move has set to Retain: the reclaim policy that it had, which it gets back. */
  policyAfterMove: 'isthmus.dev/policy-after-move',
  /** On a PV of the consumer whose data is handed over to a RetainedVolume although its policy was Delete. The value says why. */
  handedOver: 'isthmus.dev/handed-over',
} as const;

/** Scheduling gate of pods whose claim is about to get another volume. */
export const moveGate = 'isthmus.dev/volume-move';
/** On a claim that is about to get another volume, and on the VolumeMove itself. */
export const moveFinalizer = 'isthmus.dev/volume-move';
/** On pods that copy a volume: name of the VolumeMove. */
export const moverLabel = 'isthmus.dev/mover-of';

/** Values of `storageAnnotation.data`. Without it data is kept, however the claim ends. */
export const storageData = { delete: 'delete' } as const;

export type ReclaimPolicy = 'Delete' | 'Retain';

/** The claim of the consumer that a claim at the provider is for. */
export interface HomeClaim {
  readonly namespace: string;
  readonly name: string;
  readonly uid: string;
}

/** What the consumer writes on the claim at the provider, besides the labels of every reflected object. */
export const claimAnnotations = (home: HomeClaim, policy: ReclaimPolicy): Record<string, string> => ({
  [storageAnnotation.claim]: `${home.namespace}/${home.name}`,
  [storageAnnotation.claimUid]: home.uid,
  [storageAnnotation.reclaimPolicy]: policy,
});

/** Undefined: not a claim of ours, or one that Liqo made. */
export function homeClaimOf(annotations: Readonly<Record<string, string>> | undefined): HomeClaim | undefined {
  const [namespace, name, ...more] = (annotations?.[storageAnnotation.claim] ?? '').split('/');
  const uid = annotations?.[storageAnnotation.claimUid];
  return namespace && name && uid && more.length === 0 ? { namespace, name, uid } : undefined;
}

/** Whose data it is to its user: while a volume moves, the claim of the consumer is one that stands for another. */
export function meantClaimOf(annotations: Readonly<Record<string, string>> | undefined): HomeClaim | undefined {
  const home = homeClaimOf(annotations);
  return home && { ...home, name: annotations?.[storageAnnotation.standsFor] || home.name };
}

/** Where a volume is that is bound at a provider. */
export interface RemoteClaim {
  readonly provider: string;
  readonly namespace: string;
  readonly name: string;
}

export const volumeHandle = ({ provider, namespace, name }: RemoteClaim): string => `${provider}/${namespace}/${name}`;

/** The inverse of `volumeHandle`; undefined: not one of ours. */
export function remoteClaimOf(handle: string): RemoteClaim | undefined {
  const [provider, namespace, name, ...more] = handle.split('/');
  return provider && namespace && name && more.length === 0 ? { provider, namespace, name } : undefined;
}
