/** What the claims of an offloaded pod are called at its provider (docs/storage.md#which-pods-may-use-a-claim). */
import type { KubeApi } from '#kube/model/types.ts';
import {
  type PersistentVolume,
  type PersistentVolumeClaim,
  persistentVolumeClaims,
  persistentVolumes,
} from '#shared/domain/core-kinds.ts';
import type { Pod, PodSpec } from '#shared/domain/kube-object.ts';
import { storageAnnotation, virtualProvisioners } from '#shared/domain/storage-keys.ts';
import { isOurVolume, remoteOf } from '#shared/domain/volumes.ts';

type Volume = NonNullable<PodSpec['volumes']>[number];

/** Names of claims at the provider by names of volumes of the pod; or why the pod cannot run there (yet). */
export type RemoteVolumes = { readonly names: ReadonlyMap<string, string> } | { readonly missing: string };

export interface UsedClaim {
  readonly volume: string;
  readonly claim: string;
}

/** Those of generic ephemeral volumes included, which bear the names of pod and volume. */
export const claimsOf = (pod: Pick<Pod, 'metadata' | 'spec'>): UsedClaim[] =>
  (pod.spec?.volumes ?? []).flatMap(({ name, persistentVolumeClaim, ephemeral }) => {
    if (persistentVolumeClaim) return [{ volume: name, claim: persistentVolumeClaim.claimName }];
    return ephemeral ? [{ volume: name, claim: `${pod.metadata.name}-${name}` }] : [];
  });

/** `at`: cluster and namespace where the pod is to run. */
export async function remoteVolumesOf(
  pod: Pod,
  at: { readonly provider: string; readonly namespace: string },
  api: KubeApi,
  signal: AbortSignal,
): Promise<RemoteVolumes> {
  const names = new Map<string, string>();
  for (const { volume, claim } of claimsOf(pod)) {
    const ref = { namespace: pod.metadata.namespace ?? '', name: claim };
    const object = await api.get(persistentVolumeClaims, ref, signal);
    const bound = object?.spec?.volumeName;
    const persistent = bound ? await api.get(persistentVolumes, { name: bound }, signal) : undefined;
    const found = remoteName(claim, object, persistent, at);
    if ('missing' in found) return found;
    names.set(volume, found.name);
  }
  return { names };
}

/** Pure. */
export function remoteName(
  name: string,
  claim: PersistentVolumeClaim | undefined,
  volume: PersistentVolume | undefined,
  { provider, namespace }: { readonly provider: string; readonly namespace: string },
): { readonly name: string } | { readonly missing: string } {
  if (!claim) return { missing: `claim ${name} does not exist` };
  if (claim.metadata.annotations?.[storageAnnotation.externalClaim] === 'true') return { name };
  if (!claim.spec?.volumeName || !volume) return { missing: `claim ${name} has no volume yet` };
  if (!isOurVolume(volume))
    return {
      missing: `claim ${name} is of StorageClass ${claim.spec.storageClassName ?? '""'}, whose volumes are in this cluster only: use a class of provisioner ${virtualProvisioners.join(' or ')}, or, if namespace ${namespace} of cluster ${provider} has a claim of this name, annotate the claim here with ${storageAnnotation.externalClaim}=true`,
    };
  const at = remoteOf(volume);
  if (!at) return { missing: `the volume of claim ${name} is in this cluster, not at cluster ${provider}` };
  if (at.provider !== provider)
    return { missing: `the volume of claim ${name} is at cluster ${at.provider}, not at cluster ${provider}` };
  if (at.namespace !== namespace)
    return {
      missing: `the volume of claim ${name} is in namespace ${at.namespace} of cluster ${provider}, and the pod is to run in namespace ${namespace}`,
    };
  return { name: at.name };
}

/** `names`: by names of volumes. */
export const withRemoteNames = (volumes: readonly Volume[], names: ReadonlyMap<string, string>): Volume[] =>
  volumes.map(({ ephemeral, ...volume }) => {
    const claimName = names.get(volume.name);
    if (claimName === undefined) return ephemeral ? { ...volume, ephemeral } : volume;
    return { ...volume, persistentVolumeClaim: { ...volume.persistentVolumeClaim, claimName } };
  });
