/** What the API servers say of the VolumeSnapshot as which a claim is to begin: its content, and the one beside the real claim that is to be made. */

import { getIfServed, isUnserved } from '#kube/model/optional-kind.ts';
import type { KubeApi } from '#kube/model/types.ts';
import { type PersistentVolumeClaim, persistentVolumeClaims } from '#shared/domain/core-kinds.ts';
import { homeSnapshotOf, remoteSnapshotOf } from '#shared/domain/snapshot-keys.ts';
import {
  handleOf,
  type VolumeSnapshot,
  type VolumeSnapshotContent,
  volumeSnapshotContents,
  volumeSnapshots,
} from '#shared/domain/snapshot-kinds.ts';
import { remoteVolumeDriver, storageNamespace } from '#shared/domain/storage-keys.ts';
import { snapshotProvider } from '#shared/domain/volumes.ts';
import { dataSourceOf } from '../model/data-source.ts';
import { contentOf } from '../model/snapshot-pair.ts';
import type { ReachableProviders } from '../providers/reachable-providers.ts';
import { importContentName } from '../snapshots/imports.ts';
import type { RealSnapshot, SnapshotFacts } from './snapshot-source.ts';
import type { Found } from './source.ts';

interface Clusters {
  readonly api: KubeApi;
  readonly providers: ReachableProviders;
}

export async function readSnapshotSource(
  claim: PersistentVolumeClaim,
  target: Found,
  { api, providers }: Clusters,
  signal: AbortSignal,
): Promise<SnapshotFacts> {
  const asked = dataSourceOf(claim);
  if (asked.kind !== 'snapshot') return { isServed: true };
  const namespace = claim.metadata.namespace ?? '';
  let snapshot: VolumeSnapshot | undefined;
  try {
    snapshot = await api.get(volumeSnapshots, { namespace, name: asked.name }, signal);
  } catch (error) {
    if (isUnserved(error)) return { isServed: false };
    throw error;
  }
  const bound = snapshot?.status?.boundVolumeSnapshotContentName;
  const content = bound ? await api.get(volumeSnapshotContents, { name: bound }, signal) : undefined;
  const facts = { isServed: true, snapshot, content };
  const source = contentOf(facts);
  if (source === undefined || snapshotProvider(source) !== (target.kind === 'remote' ? target.provider : undefined))
    return facts;
  const real =
    source.spec.driver === remoteVolumeDriver
      ? await realAt(source, namespace, providers, signal)
      : await realHere(claim, api, signal);
  return { ...facts, real };
}

async function realHere(
  { metadata: { uid = '' } }: PersistentVolumeClaim,
  api: KubeApi,
  signal: AbortSignal,
): Promise<RealSnapshot> {
  const object = await api.get(volumeSnapshots, { namespace: storageNamespace, name: uid }, signal);
  const content = await api.get(volumeSnapshotContents, { name: importContentName(uid) }, signal);
  return object && content ? { kind: 'there', object } : { kind: 'absent' };
}

async function realAt(
  content: VolumeSnapshotContent,
  local: string,
  providers: ReachableProviders,
  signal: AbortSignal,
): Promise<RealSnapshot> {
  const handle = handleOf(content) ?? '';
  const at = remoteSnapshotOf(handle);
  if (at === undefined) return { kind: 'gone', why: `snapshotHandle ${handle} names no snapshot at a provider` };
  const reach = providers.reach(at, local);
  if (reach.kind === 'unknown') return reach;
  if (reach.kind === 'unreachable') return { kind: 'gone', why: reach.why };
  const { namespace, name, provider } = at;
  const { api } = reach.peer;
  const object = await getIfServed(api, volumeSnapshots, { namespace, name }, signal);
  if (object === undefined || homeSnapshotOf(object.metadata.annotations) === undefined)
    return { kind: 'gone', why: `cluster ${provider} has no VolumeSnapshot ${namespace}/${name}` };
  const of = object.spec?.source?.persistentVolumeClaimName;
  const source = of ? await api.get(persistentVolumeClaims, { namespace, name: of }, signal) : undefined;
  return { kind: 'there', object, storageClass: source?.spec?.storageClassName };
}
