/** Whether the volumes of a pod may be at a provider, by the claims that it uses and their classes. */
import { isDefaultClass } from '#agent/storage/model/claims.ts';
import type { KubeApi } from '#kube/model/types.ts';
import {
  type PersistentVolumeClaim,
  persistentVolumeClaims,
  type StorageClass,
  storageClasses,
} from '#shared/domain/core-kinds.ts';
import type { Pod } from '#shared/domain/kube-object.ts';
import { storageAnnotation } from '#shared/domain/storage-keys.ts';
import { isVirtual } from '#shared/domain/volumes.ts';
import type { Claims } from './pod.ts';

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
  return judge(used, await api.list(storageClasses, {}, signal));
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
