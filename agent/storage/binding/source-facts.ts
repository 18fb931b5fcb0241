/** What the API servers say of the claim that another one is to be a copy of: its volume, and the real claim behind that. */
import type { KubeApi } from '#kube/model/types.ts';
import {
  type PersistentVolume,
  type PersistentVolumeClaim,
  persistentVolumeClaims,
  persistentVolumes,
} from '#shared/domain/core-kinds.ts';
import { homeClaimOf, type RemoteClaim, storageNamespace } from '#shared/domain/storage-keys.ts';
import { isOurVolume, remoteOf } from '#shared/domain/volumes.ts';
import { claimUidOf, realClaimUids } from '../model/claims.ts';
import { dataSourceOf } from '../model/data-source.ts';
import type { ReachableProviders } from '../providers/reachable-providers.ts';
import type { Found, RealSource, SourceFacts } from './source.ts';

interface Clusters {
  readonly api: KubeApi;
  readonly providers: ReachableProviders;
}

/** Empty: the claim names no other claim, or one that does not exist. */
export async function readSource(
  claim: PersistentVolumeClaim,
  target: Found,
  { api, providers }: Clusters,
  signal: AbortSignal,
): Promise<SourceFacts> {
  const asked = dataSourceOf(claim);
  if (asked.kind !== 'claim') return {};
  const namespace = claim.metadata.namespace ?? '';
  const source = await api.get(persistentVolumeClaims, { namespace, name: asked.name }, signal);
  const bound = source?.spec?.volumeName;
  const volume = bound ? await api.get(persistentVolumes, { name: bound }, signal) : undefined;
  if (source === undefined || volume === undefined || !isOurVolume(volume)) return { claim: source, volume };
  const at = remoteOf(volume);
  if (at?.provider !== (target.kind === 'remote' ? target.provider : undefined)) return { claim: source, volume };
  const real = at
    ? await realAt(at, namespace, realClaimUids(volume), providers, signal)
    : await realHere(volume, api, signal);
  return { claim: source, volume, real };
}

async function realHere({ metadata }: PersistentVolume, api: KubeApi, signal: AbortSignal): Promise<RealSource> {
  const ref = { namespace: storageNamespace, name: claimUidOf(metadata.name) };
  const object = await api.get(persistentVolumeClaims, ref, signal);
  if (object === undefined) return { kind: 'gone', why: `there is no claim ${ref.namespace}/${ref.name}` };
  const name = object.spec?.volumeName;
  return { kind: 'there', object, volume: name ? await api.get(persistentVolumes, { name }, signal) : undefined };
}

async function realAt(
  at: RemoteClaim,
  local: string,
  whom: readonly string[],
  providers: ReachableProviders,
  signal: AbortSignal,
): Promise<RealSource> {
  const reach = providers.reach(at, local);
  if (reach.kind === 'unknown') return reach;
  if (reach.kind === 'unreachable') return { kind: 'gone', why: reach.why };
  const { provider, namespace, name } = at;
  const object = await reach.peer.api.get(persistentVolumeClaims, { namespace, name }, signal);
  const home = homeClaimOf(object?.metadata.annotations);
  if (object === undefined || home === undefined || !whom.includes(home.uid))
    return { kind: 'gone', why: `cluster ${provider} has no claim ${namespace}/${name} for it` };
  return { kind: 'there', object };
}
