/** Has a provider accept more of guests than it does by default. */
import type { KubeApi } from '#kube/model/types.ts';
import type { GuestPolicy } from '#shared/schema/isthmus/guest-policy.ts';
import { type PeeringPolicy, peeringPolicies } from '#shared/schema/isthmus/peering-policy.ts';

export const acceptGuests = async (api: KubeApi, guests: GuestPolicy, name = 'guests'): Promise<void> => {
  const apiVersion = 'isthmus.dev/v1alpha1';
  const spec = { asProvider: { guests } } as unknown as PeeringPolicy['spec'];
  await api.create(peeringPolicies, { apiVersion, kind: 'PeeringPolicy', metadata: { name }, spec });
};
