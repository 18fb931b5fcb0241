/** Claims of a consumer in a cluster without its webhooks: marked as the webhook of the provider marks them. */
import type { KubeApi } from '#kube/model/types.ts';
import { persistentVolumeClaims } from '#shared/domain/core-kinds.ts';
import { guestVolume } from '#shared/domain/guest-volume-keys.ts';
import { eventually } from './eventually.ts';

export interface GuestClaim {
  readonly namespace: string;
  /** In namespace `shop` of consumer `rome`, where its uid is `home-NAME`; here as well, unless `nameHere` says otherwise. */
  readonly name: string;
  readonly nameHere?: string;
  readonly storage: string;
  readonly annotations?: Readonly<Record<string, string>>;
}

/** Of the class `records` (`provisionVolumes`). Resolves with the name of its volume, once it has one. */
export async function boundGuestClaim(
  api: KubeApi,
  { namespace, name, nameHere = name, storage, annotations = {} }: GuestClaim,
): Promise<string> {
  const ref = { namespace, name: nameHere };
  await api.create(persistentVolumeClaims, {
    apiVersion: 'v1',
    kind: 'PersistentVolumeClaim',
    metadata: {
      ...ref,
      labels: { [guestVolume.label]: 'rome' },
      finalizers: [guestVolume.finalizer],
      annotations: { 'isthmus.dev/claim': `shop/${name}`, 'isthmus.dev/claim-uid': `home-${name}`, ...annotations },
    },
    spec: { accessModes: ['ReadWriteOnce'], storageClassName: 'records', resources: { requests: { storage } } },
  });
  return eventually(`claim ${namespace}/${nameHere} to have a volume`, async () => {
    const claim = await api.get(persistentVolumeClaims, ref);
    return claim?.status?.phase === 'Bound' ? claim.spec?.volumeName : undefined;
  });
}
