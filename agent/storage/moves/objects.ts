/** What a move makes: a claim for the copy, pods that send and fetch it, the Service between them and their keys. Pure. */
import { ownerOf } from '#kube/writes/owner-references.ts';
import type { PersistentVolume, PersistentVolumeClaim, Service } from '#shared/domain/core-kinds.ts';
import type { Pod, Secret } from '#shared/domain/kube-object.ts';
import { annotation, label, linuxOnly } from '#shared/domain/liqo-keys.ts';
import { moverLabel, storageAnnotation } from '#shared/domain/storage-keys.ts';
import { localTarget, type VolumeMove, volumeMoves } from '#shared/schema/isthmus/volume-move.ts';
import type { ServingCertificate } from '../../pki/webhook-certificate.ts';
import { amountOf, requestOf, selectedNode } from '../model/claims.ts';
import { moverDevice, moverPort } from '../mover/transport.ts';

type Claim = PersistentVolumeClaim;
export type MoverRole = 'send' | 'live' | 'final';

const idLength = 8;

/** Names of what a move makes begin with it; another way is another set. */
const idOf = ({ metadata }: VolumeMove): string => `move-${(metadata.uid ?? '').slice(0, idLength)}`;
const prefixOf = (move: VolumeMove): string => `${idOf(move)}${move.status?.way === 'back' ? '-back' : ''}`;
export const stagingName = prefixOf;
/** Of either way. */
export const isStaging = (move: VolumeMove, name: string): boolean => name.startsWith(idOf(move));
export const moverName = (move: VolumeMove, role: MoverRole): string => `${prefixOf(move)}-${role}`;

const metadataOf = (move: VolumeMove, name: string) => ({
  namespace: move.metadata.namespace ?? '',
  name,
  labels: { [moverLabel]: move.metadata.name },
  ownerReferences: [ownerOf(volumeMoves, move)],
});

/** As it is noted before the claim goes, so that it can be made again. */
export interface ClaimNote {
  readonly labels: Readonly<Record<string, string>>;
  readonly annotations: Readonly<Record<string, string>>;
  readonly ownerReferences: NonNullable<Claim['metadata']['ownerReferences']>;
  readonly spec: NonNullable<Claim['spec']>;
}

const ofBinding = /^(pv|volume|volume\.beta)\.kubernetes\.io\//;

export function noteOf({ metadata, spec }: Claim): ClaimNote {
  const plain = Object.entries(metadata.annotations ?? {}).filter(
    ([key]) => !ofBinding.test(key) && key !== storageAnnotation.moving,
  );
  const { volumeName: _, ...rest } = spec ?? {};
  return {
    labels: metadata.labels ?? {},
    annotations: Object.fromEntries(plain),
    ownerReferences: metadata.ownerReferences ?? [],
    spec: rest,
  };
}
export const noteFrom = (move: VolumeMove): ClaimNote => JSON.parse(move.status?.claim ?? '{}') as ClaimNote;

/** Of a claim that is to be bound to this very volume, which may be smaller than the one that it had. */
function specFor({ spec }: ClaimNote, volume: PersistentVolume | undefined): NonNullable<Claim['spec']> {
  if (volume === undefined) return spec;
  const fits = amountOf(volume.spec?.capacity) >= amountOf(spec.resources?.requests);
  const storage = fits ? requestOf({ spec }) : (volume.spec?.capacity?.storage ?? '0');
  return { ...spec, resources: { ...spec.resources, requests: { storage } }, volumeName: volume.metadata.name };
}

/** What the claim once began as a copy of may be elsewhere, or gone: the move copies what it has become. */
const withoutSource = ({ dataSource: _, dataSourceRef: __, ...spec }: ClaimNote['spec']): ClaimNote['spec'] => spec;

/** `volume`: there is one already, as on the way back. */
export const stagingClaim = (move: VolumeMove, note: ClaimNote, volume: PersistentVolume | undefined): Claim => ({
  apiVersion: 'v1',
  kind: 'PersistentVolumeClaim',
  metadata: {
    ...metadataOf(move, stagingName(move)),
    annotations: { ...note.annotations, [storageAnnotation.standsFor]: move.metadata.name },
  },
  spec: withoutSource(specFor(note, volume)),
});

/** The claim again, on its new volume. Pods wait until the move is through. */
export const claimAgain = (move: VolumeMove, note: ClaimNote, volume: PersistentVolume): Claim => ({
  apiVersion: 'v1',
  kind: 'PersistentVolumeClaim',
  metadata: {
    namespace: move.metadata.namespace ?? '',
    name: move.metadata.name,
    labels: { ...note.labels },
    annotations: {
      ...note.annotations,
      [storageAnnotation.moving]: move.metadata.uid ?? '',
      // What looks for the place of a claim finds it there, as on one that was bound to its first pod.
      ...(move.status?.to?.node !== undefined && { [selectedNode]: move.status.to.node }),
    },
    ...(note.ownerReferences.length > 0 && { ownerReferences: note.ownerReferences }),
  },
  spec: specFor(note, volume),
});

const where = (at: string) =>
  at === localTarget
    ? { key: label.type, operator: 'DoesNotExist' }
    : { key: label.remoteClusterId, operator: 'In', values: [at] };

export interface MoverPlace {
  readonly image: string;
  readonly claim: string;
  readonly at: string;
  /** Of this cluster, where the volume is mounted already. */
  readonly node?: string | undefined;
}

/** Root, with what rsync needs to give files their owners: what the baseline of the Pod Security Standards allows. */
const rights = {
  runAsUser: 0,
  runAsGroup: 0,
  runAsNonRoot: false,
  allowPrivilegeEscalation: false,
  readOnlyRootFilesystem: true,
  capabilities: { drop: ['ALL'], add: ['CHOWN', 'DAC_OVERRIDE', 'FOWNER', 'FSETID', 'MKNOD', 'SETFCAP'] },
};

export function moverPod(move: VolumeMove, role: MoverRole, { image, claim, at, node }: MoverPlace): Pod {
  const sends = role === 'send';
  const name = moverName(move, role);
  const { bytesPerSecond } = move.spec;
  const limit = bytesPerSecond === undefined ? [] : [String(bytesPerSecond)];
  const isBlock = noteFrom(move).spec.volumeMode === 'Block';
  const args = sends ? ['serve'] : [role, serviceName(move), ...limit];
  const term = {
    matchExpressions: [where(at)],
    ...(node !== undefined && { matchFields: [{ key: 'metadata.name', operator: 'In', values: [node] }] }),
  };
  return {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: {
      ...metadataOf(move, name),
      labels: { [moverLabel]: move.metadata.name, ...(sends && { [sender]: prefixOf(move) }) },
    },
    spec: {
      restartPolicy: sends ? 'Always' : 'Never',
      terminationGracePeriodSeconds: 2,
      automountServiceAccountToken: false,
      enableServiceLinks: false,
      nodeSelector: { ...linuxOnly },
      affinity: { nodeAffinity: { requiredDuringSchedulingIgnoredDuringExecution: { nodeSelectorTerms: [term] } } },
      containers: [
        {
          name: 'mover',
          image,
          imagePullPolicy: 'IfNotPresent',
          command: ['/usr/local/bin/node', '/app/mover.mjs'],
          args,
          securityContext: rights,
          resources: { requests: { cpu: '20m', memory: '96Mi' } },
          ...(sends && {
            ports: [{ name: 'volume', containerPort: moverPort }],
            readinessProbe: { tcpSocket: { port: moverPort }, periodSeconds: 1 },
          }),
          volumeMounts: [
            ...(isBlock ? [] : [{ name: 'data', mountPath: '/data', ...(sends && { readOnly: true }) }]),
            { name: 'tls', mountPath: '/tls', readOnly: true },
          ],
          ...(isBlock && { volumeDevices: [{ name: 'data', devicePath: moverDevice }] }),
        },
      ],
      volumes: [
        { name: 'data', persistentVolumeClaim: { claimName: claim } },
        { name: 'tls', secret: { secretName: keysName(move), items: keyFilesOf(sends ? 'send' : 'fetch') } },
      ],
    },
  } as unknown as Pod;
}

const sender = 'isthmus.dev/mover-that-sends';
export const serviceName = prefixOf;

/** Headless: it is reflected, so that its name leads to the pod from every cluster. */
export const moverService = (move: VolumeMove): Service => ({
  apiVersion: 'v1',
  kind: 'Service',
  metadata: {
    ...metadataOf(move, serviceName(move)),
    annotations: { [annotation.allowReflection]: 'true' },
  },
  spec: {
    clusterIP: 'None',
    selector: { [sender]: prefixOf(move) },
    ports: [{ name: 'volume', port: moverPort, targetPort: moverPort as never }],
  },
});

const encoded = (text: string): string => Buffer.from(text).toString('base64');

const otherSide = { send: 'fetch', fetch: 'send' } as const;
const keyFilesOf = (side: 'send' | 'fetch') => [
  { key: `${side}.crt`, path: 'own.crt' },
  { key: `${side}.key`, path: 'own.key' },
  { key: `${otherSide[side]}.crt`, path: 'peer.crt' },
];
export const keysName = prefixOf;

/** Of both movers, in one write: halves of two attempts would not fit each other. Each pod mounts its own key. */
export const moverKeys = (move: VolumeMove, send: ServingCertificate, fetch: ServingCertificate): Secret => ({
  apiVersion: 'v1',
  kind: 'Secret',
  metadata: { ...metadataOf(move, keysName(move)), annotations: { [annotation.allowReflection]: 'true' } },
  type: 'Opaque',
  immutable: true,
  data: {
    'send.crt': encoded(send.certificate),
    'send.key': encoded(send.privateKey),
    'fetch.crt': encoded(fetch.certificate),
    'fetch.key': encoded(fetch.privateKey),
  },
});
