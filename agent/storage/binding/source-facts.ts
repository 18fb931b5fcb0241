/** What the API servers say of the claim that another one is to be a copy of: its volume, and the real claim behind that. */
import type { KubeApi } from '#kube/model/types.ts';
import {
  type PersistentVolume,
  type PersistentVolumeClaim,
  persistentVolumeClaims,
  persistentVolumes,
} from '#shared/domain/core-kinds.ts';
import { homeClaimOf, type RemoteClaim, storageAnnotation, storageNamespace } from '#shared/domain/storage-keys.ts';
import { isOurVolume, remoteOf } from '#shared/domain/volumes.ts';
import { claimUidOf } from '../model/claims.ts';
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
    ? await realAt(at, namespace, whomFor(source, volume), providers, signal)
    : await realHere(volume, api, signal);
  return { claim: source, volume, real };
}

/** UIDs that the real claim may name: a volume that was moved was made for another claim. */
const whomFor = (source: PersistentVolumeClaim, { metadata }: PersistentVolume): readonly (string | undefined)[] => [
  source.metadata.uid,
  metadata.annotations?.[storageAnnotation.realClaimUid],
];

async function realHere({ metadata }: PersistentVolume, api: KubeApi, signal: AbortSignal): Promise<RealSource> {
  const ref = { namespace: storageNamespace, name: claimUidOf(metadata.name) };
  const object = await api.get(persistentVolumeClaims, ref, signal);
  if (object === undefined) return { kind: 'gone', why: `there is no claim ${ref.namespace}/${ref.name}` };
  const name = object.spec?.volumeName;
  return { kind: 'there', object, volume: name ? await api.get(persistentVolumes, { name }, signal) : undefined };
}

async function realAt(
  { provider, namespace, name }: RemoteClaim,
  local: string,
  whom: readonly (string | undefined)[],
  providers: ReachableProviders,
  signal: AbortSignal,
): Promise<RealSource> {
  const peer = providers.of(provider);
  const place = peer?.place(local);
  if (!peer || place === undefined) return { kind: 'unknown', on: `the connection to cluster ${provider}` };
  if (place.kind === 'held') return { kind: 'unknown', on: place.why };
  if (place.kind === 'none' || place.remoteNamespace !== namespace)
    return {
      kind: 'gone',
      why: `namespace ${local} is no longer offloaded to namespace ${namespace} of cluster ${provider}`,
    };
  peer.watch(local, namespace);
  const object = await peer.api.get(persistentVolumeClaims, { namespace, name }, signal);
  const home = homeClaimOf(object?.metadata.annotations);
  if (object === undefined || home === undefined || !whom.includes(home.uid))
    return { kind: 'gone', why: `cluster ${provider} has no claim ${namespace}/${name} for it` };
  return { kind: 'there', object };
}
