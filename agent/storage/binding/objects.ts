/** The real claim behind a claim, and the volume that stands for it in this cluster. Pure. */
import type { PersistentVolume, PersistentVolumeClaim, StorageClass } from '#shared/domain/core-kinds.ts';
import { label } from '#shared/domain/liqo-keys.ts';
import { bothTerms } from '#shared/domain/node-selector.ts';
import {
  claimAnnotations,
  provisionedBy,
  type ReclaimPolicy,
  type RemoteClaim,
  remoteVolumeDriver,
  storageAnnotation,
  storageNamespace,
  volumeFinalizer,
  volumeHandle,
} from '#shared/domain/storage-keys.ts';
import { amountOf, nodeOf, requestOf, selectedNode, volumeModeOf, volumeNameOf } from '../model/claims.ts';
import type { Target } from './target.ts';

type Claim = PersistentVolumeClaim;
type Terms = ReturnType<typeof bothTerms>;
type VolumeSpec = NonNullable<PersistentVolume['spec']>;

export const policyOf = (virtual: StorageClass): ReclaimPolicy =>
  virtual.reclaimPolicy === 'Retain' ? 'Retain' : 'Delete';

const homeOf = ({ metadata }: Claim) => ({
  namespace: metadata.namespace ?? '',
  name: metadata.name,
  uid: metadata.uid ?? '',
});

const annotationsFor = (claim: Claim, policy: ReclaimPolicy): Record<string, string> => {
  const standsFor = claim.metadata.annotations?.[storageAnnotation.standsFor];
  return { ...claimAnnotations(homeOf(claim), policy), ...(standsFor && { [storageAnnotation.standsFor]: standsFor }) };
};

const specOf = (
  claim: Claim,
  storageClassName: string,
  accessModes: readonly string[],
): NonNullable<Claim['spec']> => ({
  accessModes: [...accessModes],
  storageClassName,
  volumeMode: volumeModeOf(claim),
  ...(claim.spec?.resources && { resources: claim.spec.resources }),
});

const shape = { apiVersion: 'v1', kind: 'PersistentVolumeClaim' } as const;

export const localClaim = (
  claim: Claim,
  { storageClass }: Extract<Target, { kind: 'local' }>,
  policy: ReclaimPolicy,
  mark: string,
): Claim => ({
  ...shape,
  metadata: {
    namespace: storageNamespace,
    name: claim.metadata.uid ?? '',
    annotations: {
      ...annotationsFor(claim, policy),
      [storageAnnotation.unpublished]: mark,
      [selectedNode]: nodeOf(claim) ?? '',
    },
  },
  spec: specOf(claim, storageClass, claim.spec?.accessModes ?? []),
});

const longestName = 253;
const suffixLength = 8;

/** In the order of preference: the second when an earlier claim of this name has left its volume there. */
export function remoteNames({ metadata }: Claim): readonly [string, string] {
  const suffix = `-${(metadata.uid ?? '').replaceAll('-', '').slice(0, suffixLength)}`;
  const name = metadata.annotations?.[storageAnnotation.standsFor] ?? metadata.name;
  return [name, `${name.slice(0, longestName - suffix.length)}${suffix}`];
}

/** What binds a claim here says nothing there; `liqo.io/` is between this cluster and its users. */
const staysHere = (key: string): boolean =>
  /^(pv|volume|volume\.beta|kubectl|control-plane\.alpha)\.kubernetes\.io\//.test(key) ||
  key.startsWith('isthmus.dev/') ||
  key.startsWith('liqo.io/');

export interface RemoteShape {
  readonly consumer: string;
  readonly namespace: string;
  readonly name: string;
  /** Value of the mark that nothing was written to it yet. */
  readonly mark: string;
}

export const remoteClaim = (
  claim: Claim,
  { provider, storageClass, accessModes }: Extract<Target, { kind: 'remote' }>,
  policy: ReclaimPolicy,
  { consumer, namespace, name, mark }: RemoteShape,
): Claim => {
  const plain = ([key]: readonly [string, string]): boolean => !staysHere(key);
  const { labels = {}, annotations = {} } = claim.metadata;
  return {
    ...shape,
    metadata: {
      namespace,
      name,
      labels: {
        ...Object.fromEntries(Object.entries(labels).filter(plain)),
        [label.origin]: consumer,
        [label.destination]: provider,
      },
      annotations: {
        ...Object.fromEntries(Object.entries(annotations).filter(plain)),
        ...annotationsFor(claim, policy),
        [storageAnnotation.unpublished]: mark,
      },
    },
    spec: specOf(claim, storageClass, accessModes),
  };
};

function volumeFor(claim: Claim, virtual: StorageClass, spec: VolumeSpec): PersistentVolume {
  const { namespace, name, uid } = homeOf(claim);
  return {
    apiVersion: 'v1',
    kind: 'PersistentVolume',
    metadata: {
      name: volumeNameOf(uid),
      annotations: { [provisionedBy]: virtual.provisioner },
      finalizers: [volumeFinalizer],
    },
    spec: {
      accessModes: claim.spec?.accessModes ?? [],
      volumeMode: volumeModeOf(claim),
      persistentVolumeReclaimPolicy: policyOf(virtual),
      storageClassName: virtual.metadata.name,
      claimRef: { apiVersion: 'v1', kind: 'PersistentVolumeClaim', namespace, name, uid },
      ...spec,
    },
  };
}

/** No real node has the label, so none mounts it; the driver exists on no node at all. */
export const remoteVolume = (claim: Claim, virtual: StorageClass, at: RemoteClaim): PersistentVolume =>
  volumeFor(claim, virtual, {
    capacity: { storage: requestOf(claim) },
    csi: { driver: remoteVolumeDriver, volumeHandle: volumeHandle(at) },
    nodeAffinity: {
      required: {
        nodeSelectorTerms: [
          { matchExpressions: [{ key: label.remoteClusterId, operator: 'In', values: [at.provider] }] },
        ],
      },
    },
  });

const own = [
  'accessModes',
  'capacity',
  'claimRef',
  'nodeAffinity',
  'persistentVolumeReclaimPolicy',
  'storageClassName',
  'volumeAttributesClassName',
  'volumeMode',
];

/** Everything by which the real volume is mounted, and where; never on a virtual node. */
export function localVolume(claim: Claim, virtual: StorageClass, real: PersistentVolume): PersistentVolume {
  const { spec = {} } = real;
  const source = Object.fromEntries(Object.entries(spec).filter(([key]) => !own.includes(key)));
  const notVirtual: Terms = [{ matchExpressions: [{ key: label.type, operator: 'DoesNotExist' }] }];
  const required = spec.nodeAffinity?.required?.nodeSelectorTerms;
  const bigger = amountOf(spec.capacity) > amountOf(claim.spec?.resources?.requests);
  return volumeFor(claim, virtual, {
    ...source,
    capacity: { storage: bigger ? (spec.capacity?.storage ?? requestOf(claim)) : requestOf(claim) },
    nodeAffinity: { required: { nodeSelectorTerms: required ? bothTerms(required, notVirtual) : notVirtual } },
  });
}
