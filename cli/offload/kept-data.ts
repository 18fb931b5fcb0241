/** Which data stays, and where, when a peering, an offloading or Isthmus itself is about to end. */
import type { KubeClient } from '#cli/cluster/open.ts';
import {
  type PersistentVolume,
  type PersistentVolumeClaim,
  persistentVolumeClaims,
  persistentVolumes,
} from '#shared/domain/core-kinds.ts';
import { guestVolume } from '#shared/domain/guest-volume-keys.ts';
import { homeSnapshotOf } from '#shared/domain/snapshot-keys.ts';
import { volumeSnapshotContents, volumeSnapshots } from '#shared/domain/snapshot-kinds.ts';
import { meantClaimOf, type RemoteClaim } from '#shared/domain/storage-keys.ts';
import { isOurVolume, remoteOf, snapshotProvider } from '#shared/domain/volumes.ts';
import { AppError } from '#shared/errors/app-error.ts';

export interface KeptData {
  /** `<namespace>/<name>` in the cluster of its pods. */
  readonly claim: string;
  readonly size: string;
}
export interface RemoteVolume extends KeptData {
  readonly at: RemoteClaim;
}

const unknownSize = 'unknown size';

function dataOf(volume: PersistentVolume): KeptData & { readonly at: RemoteClaim | undefined } {
  const { claimRef, capacity } = volume.spec ?? {};
  return {
    at: remoteOf(volume),
    claim: `${claimRef?.namespace}/${claimRef?.name}`,
    size: String(capacity?.storage ?? unknownSize),
  };
}

/** Volumes of this cluster whose data is at providers. */
export const remoteVolumes = async (
  kube: KubeClient,
  isMeant: (volume: RemoteVolume) => boolean,
): Promise<RemoteVolume[]> =>
  (await kube.list(persistentVolumes))
    .map(dataOf)
    .flatMap(({ at, ...data }) => (at === undefined ? [] : [{ at, ...data }]))
    .filter(isMeant);

/** Volumes of virtual classes whose data is in this cluster. */
const localVolumes = async (kube: KubeClient): Promise<KeptData[]> =>
  (await kube.list(persistentVolumes))
    .filter(isOurVolume)
    .map(dataOf)
    .filter(({ at }) => at === undefined);

/** Claims of consumers whose data is in this cluster. */
async function guestData(kube: KubeClient, consumer?: string): Promise<KeptData[]> {
  const selector = consumer === undefined ? guestVolume.label : `${guestVolume.label}=${consumer}`;
  return (await kube.list<PersistentVolumeClaim>(persistentVolumeClaims, selector)).map(
    ({ metadata, spec, status }) => {
      const home = meantClaimOf(metadata.annotations);
      const claim = home ? `${home.namespace}/${home.name}` : `${metadata.namespace}/${metadata.name}`;
      const size = status?.capacity?.storage ?? spec?.resources?.requests?.storage ?? unknownSize;
      const whose = metadata.labels?.[guestVolume.label];
      return { claim: `${claim} of ${whose}`, size };
    },
  );
}

interface KeptSnapshot {
  /** `<namespace>/<name>` in the cluster of its user. */
  readonly snapshot: string;
  readonly provider: string;
}

/** Snapshots of this cluster that are at providers. */
const remoteSnapshots = async (
  kube: KubeClient,
  isMeant: (snapshot: KeptSnapshot) => boolean,
): Promise<KeptSnapshot[]> =>
  (await kube.list(volumeSnapshotContents))
    .flatMap((content) => {
      const provider = snapshotProvider(content);
      const { namespace, name } = content.spec.volumeSnapshotRef;
      return provider === undefined ? [] : [{ snapshot: `${namespace}/${name}`, provider }];
    })
    .filter(isMeant);

/** Snapshots of consumers in this cluster. */
async function guestSnapshots(kube: KubeClient, consumer?: string): Promise<string[]> {
  const selector = consumer === undefined ? guestVolume.label : `${guestVolume.label}=${consumer}`;
  return (await kube.list(volumeSnapshots, selector)).map(({ metadata }) => {
    const home = homeSnapshotOf(metadata.annotations);
    const { namespace, name } = home ?? metadata;
    return `${namespace}/${name} of ${metadata.labels?.[guestVolume.label]}`;
  });
}

const asContents = `each as a VolumeSnapshotContent (\`kubectl get volumesnapshotcontents -l ${guestVolume.keptFor}\``;

const listed = (head: string, lines: readonly string[]): string =>
  lines.length === 0 ? '' : [head, ...lines.map((line) => `  ${line}`), ''].join('\n');
const line = ({ claim, size }: KeptData): string => `${claim}, ${size}`;

/** What ends with the offloading, or does not. Empty when no volume is concerned. */
export const keptNotice = (volumes: readonly RemoteVolume[]): string =>
  listed(
    'the providers keep the data of these claims, each as a RetainedVolume (`isthmus volume list` there):',
    volumes.map((one) => `${line(one)}, at ${one.at.provider}`),
  );

/** The same of snapshots. */
export const keptSnapshotsNotice = async (
  kube: KubeClient,
  isMeant: (snapshot: KeptSnapshot) => boolean,
): Promise<string> =>
  listed(
    `the providers keep the data of these VolumeSnapshots, ${asContents} there):`,
    (await remoteSnapshots(kube, isMeant)).map(({ snapshot, provider }) => `${snapshot}, at ${provider}`),
  );

/** A notice stops no command: what it names is kept whether it could be read or not. Other errors than those of the cluster are the user's to correct. */
export async function noticeOr(notice: () => Promise<string>, unread: string): Promise<string> {
  try {
    return await notice();
  } catch (error) {
    if (!(error instanceof AppError) || !error.code.startsWith('kube_')) throw error;
    return `${unread} could not be read (${error.message}); going on: no data is deleted with it\n`;
  }
}

/** The same for one peering, by the kubeconfig of either side. */
export async function peeringNotice(
  kube: KubeClient,
  self: string,
  { consumer, provider }: { readonly consumer: string; readonly provider: string },
): Promise<string> {
  if (self === consumer)
    return [
      keptNotice(await remoteVolumes(kube, ({ at }) => at.provider === provider)),
      await keptSnapshotsNotice(kube, (one) => one.provider === provider),
    ].join('');
  return [
    listed(
      `${provider} keeps the data of these claims, each as a RetainedVolume (\`isthmus volume list\`):`,
      (await guestData(kube, consumer)).map(line),
    ),
    listed(
      `${provider} keeps the data of these VolumeSnapshots, ${asContents}):`,
      await guestSnapshots(kube, consumer),
    ),
  ].join('');
}

/** Of a cluster that Isthmus is taken out of. */
export async function departureNotice(kube: KubeClient): Promise<string> {
  return [
    keptNotice(await remoteVolumes(kube, () => true)),
    listed(
      'this cluster keeps the data of these claims, which go on having their volumes:',
      (await localVolumes(kube)).map(line),
    ),
    listed(
      'this cluster keeps the data of these claims of guests, on PersistentVolumes with policy Retain:',
      (await guestData(kube)).map(line),
    ),
    await keptSnapshotsNotice(kube, () => true),
    listed(
      'this cluster keeps the data of these VolumeSnapshots of guests, by VolumeSnapshotContents with policy Retain:',
      await guestSnapshots(kube),
    ),
  ].join('');
}
