/** Whether the volumes of a pod may be at a provider, by the claims that it uses and their classes. */
import { isDefaultClass } from '#agent/storage/model/claims.ts';
import { dataSourceOf } from '#agent/storage/model/data-source.ts';
import { contentOf } from '#agent/storage/model/snapshot-pair.ts';
import { getIfServed } from '#kube/model/optional-kind.ts';
import type { KubeApi } from '#kube/model/types.ts';
import {
  type PersistentVolumeClaim,
  persistentVolumeClaims,
  persistentVolumes,
  type StorageClass,
  storageClasses,
} from '#shared/domain/core-kinds.ts';
import type { ObjectRef, Pod } from '#shared/domain/kube-object.ts';
import { volumeSnapshotContents, volumeSnapshots } from '#shared/domain/snapshot-kinds.ts';
import { storageAnnotation } from '#shared/domain/storage-keys.ts';
import { isOurVolume, isVirtual, remoteOf, snapshotProvider } from '#shared/domain/volumes.ts';
import { type Claims, here } from './pod.ts';

/** A claim that does not exist yet: its class is not known, so its pod stays where all classes work. */
type Used = Pick<PersistentVolumeClaim, 'metadata' | 'spec'> | 'missing';

/** Asks the API server only about pods that use claims. */
export async function claimsOfPod(
  { spec }: Pod,
  namespace: string,
  api: KubeApi,
  signal: AbortSignal,
): Promise<Claims> {
  const used = await Promise.all(
    (spec?.volumes ?? []).flatMap(({ persistentVolumeClaim, ephemeral }): Promise<Used>[] => {
      if (persistentVolumeClaim) {
        const ref = { namespace, name: persistentVolumeClaim.claimName };
        return [api.get(persistentVolumeClaims, ref, signal).then((claim) => claim ?? 'missing')];
      }
      const template = ephemeral?.volumeClaimTemplate;
      return template
        ? [Promise.resolve({ metadata: { name: '', ...template.metadata }, spec: template.spec } as Used)]
        : [];
    }),
  );
  if (used.length === 0) return { movable: true, open: false, moving: false };
  const sources = await Promise.all(used.map((claim) => sourceOf(claim, namespace, api, signal)));
  return {
    ...judge(used, await api.list(storageClasses, {}, signal)),
    sources: [...new Set(sources.flat())],
  };
}

/** Where the data is as which a claim without a volume is to begin. Empty: with none, or that data has no place yet. */
async function sourceOf(
  claim: Used,
  namespace: string,
  api: KubeApi,
  signal: AbortSignal,
): Promise<NonNullable<Claims['sources']>> {
  if (claim === 'missing' || claim.spec?.volumeName) return [];
  const source = dataSourceOf({ ...claim, metadata: { ...claim.metadata, namespace } });
  switch (source.kind) {
    case 'claim':
      return placeOfClaim({ namespace, name: source.name }, api, signal);
    case 'snapshot':
      return placeOfSnapshot({ namespace, name: source.name }, api, signal);
    default:
      return [];
  }
}

type Places = NonNullable<Claims['sources']>;

async function placeOfSnapshot(ref: ObjectRef, api: KubeApi, signal: AbortSignal): Promise<Places> {
  const snapshot = await getIfServed(api, volumeSnapshots, ref, signal);
  const { boundVolumeSnapshotContentName: name } = snapshot?.status ?? {};
  const content = contentOf({
    snapshot,
    content: name ? await api.get(volumeSnapshotContents, { name }, signal) : undefined,
  });
  if (content) return [snapshotProvider(content) ?? here];
  // It will be where the volume is of which it is taken.
  const of = snapshot?.spec?.source?.persistentVolumeClaimName;
  return of ? placeOfClaim({ ...ref, name: of }, api, signal) : [];
}

async function placeOfClaim(ref: ObjectRef, api: KubeApi, signal: AbortSignal): Promise<Places> {
  const named = await api.get(persistentVolumeClaims, ref, signal);
  const { volumeName } = named?.spec ?? {};
  const volume = volumeName ? await api.get(persistentVolumes, { name: volumeName }, signal) : undefined;
  return volume && isOurVolume(volume) ? [remoteOf(volume)?.provider ?? here] : [];
}

/** Pure. */
export function judge(used: readonly Used[], classes: readonly StorageClass[]): Claims {
  const movable = used.every((claim) => claim !== 'missing' && isMovable(claim, classes));
  const open = used.some((claim) => claim !== 'missing' && !claim.spec?.volumeName && !isExternal(claim));
  const moving = used.some(
    (claim) => claim !== 'missing' && claim.metadata.annotations?.[storageAnnotation.moving] !== undefined,
  );
  return { movable, open, moving };
}

const isExternal = ({ metadata }: Exclude<Used, 'missing'>): boolean =>
  metadata.annotations?.[storageAnnotation.externalClaim] === 'true';

function isMovable(claim: Exclude<Used, 'missing'>, classes: readonly StorageClass[]): boolean {
  if (isExternal(claim)) return true;
  const name = claim.spec?.storageClassName;
  const found =
    name === undefined ? classes.find(isDefaultClass) : classes.find(({ metadata }) => metadata.name === name);
  return isVirtual(found);
}
