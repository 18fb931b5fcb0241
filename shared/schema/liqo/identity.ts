/** authentication.liqo.io Identity: how this consumer logs in at a provider. Lives on the consumer, in the tenant namespace. */
import * as z from 'zod';
import type { KubeResource } from '#shared/domain/kube-object.ts';
import { AuthParams, ClusterId, LocalObjectReference } from '../definition/fields.ts';
import { ageColumn, defineKind } from '../definition/kind.ts';

export const IdentityType = z.enum(['ControlPlane', 'ResourceSlice']);
export type IdentityType = z.infer<typeof IdentityType>;

const IdentitySpec = z.object({
  clusterID: ClusterId.describe('Cluster ID of the provider.'),
  type: IdentityType.describe('ControlPlane: the replicator logs in with it. ResourceSlice: one virtual node does.'),
  authParams: AuthParams.describe('Overwritten at each renewal.'),
  namespace: z
    .string()
    .optional()
    .describe('Namespace of this consumer at the provider; unset for ResourceSlice identities.'),
});
type IdentitySpec = z.infer<typeof IdentitySpec>;

const IdentityStatus = z.object({
  kubeconfigSecretRef: LocalObjectReference.optional().describe('Secret with the kubeconfig made of this identity.'),
});
type IdentityStatus = z.infer<typeof IdentityStatus>;

export type Identity = KubeResource<IdentitySpec, IdentityStatus>;

export const identities = defineKind<Identity>({
  group: 'authentication.liqo.io',
  version: 'v1beta1',
  kind: 'Identity',
  plural: 'identities',
  namespaced: true,
  shortNames: ['id'],
  categories: ['liqo'],
  description: 'How this consumer logs in at a provider. Lives on the consumer.',
  writers: {
    object: 'broker or liqoctl (ControlPlane), identity creator (ResourceSlice); renewal overwrites authParams',
    status: 'identity controller',
  },
  columns: [
    { name: 'Type', type: 'string', jsonPath: '.spec.type' },
    {
      name: 'KubeconfigSecret',
      type: 'string',
      jsonPath: '.status.kubeconfigSecretRef.name',
      priority: 1,
    },
    ageColumn,
  ],
  spec: IdentitySpec,
  status: IdentityStatus,
});
