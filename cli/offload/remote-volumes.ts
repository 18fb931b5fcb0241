/** Volumes of this cluster whose data is at providers. */
import type { KubeClient } from '#cli/cluster/open.ts';
import { type PersistentVolume, persistentVolumes } from '#shared/domain/core-kinds.ts';
import { type RemoteClaim, remoteClaimOf, remoteVolumeDriver } from '#shared/domain/storage-keys.ts';

export interface RemoteVolume {
  readonly at: RemoteClaim;
  /** `<namespace>/<name>` of the claim here. */
  readonly claim: string;
  readonly size: string;
}

function remoteVolumeOf({ spec }: PersistentVolume): RemoteVolume[] {
  const { csi, claimRef, capacity } = spec ?? {};
  const at = csi?.driver === remoteVolumeDriver ? remoteClaimOf(csi.volumeHandle) : undefined;
  if (at === undefined) return [];
  return [{ at, claim: `${claimRef?.namespace}/${claimRef?.name}`, size: String(capacity?.storage ?? 'unknown size') }];
}

export const remoteVolumes = async (
  kube: KubeClient,
  isMeant: (volume: RemoteVolume) => boolean,
): Promise<RemoteVolume[]> => (await kube.list(persistentVolumes)).flatMap(remoteVolumeOf).filter(isMeant);

/** What ends with the offloading, or does not. Empty when no volume is concerned. */
export const keptNotice = (volumes: readonly RemoteVolume[]): string =>
  volumes.length === 0
    ? ''
    : [
        'the providers keep the data of these claims, each as a RetainedVolume (`isthmus volume list` there):',
        ...volumes.map(({ at, claim, size }) => `  ${claim}, ${size}, at ${at.provider}`),
        '',
      ].join('\n');
