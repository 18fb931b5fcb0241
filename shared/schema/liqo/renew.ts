/** authentication.liqo.io Renew: a consumer's request to have its control-plane certificate renewed. Original on the consumer, copy on the provider. */
import * as z from 'zod';
import type { KubeResource } from '#shared/domain/kube-object.ts';
import { AuthParams, Bytes, ClusterId, LocalObjectReference } from '../definition/fields.ts';
import { ageColumn, defineKind } from '../definition/kind.ts';
import { IdentityType } from './identity.ts';

const RenewSpec = z.object({
  consumerClusterID: ClusterId.describe('The consumer that requests the renewal.'),
  identityType: IdentityType.describe('Always ControlPlane: slices renew through their own spec.'),
  publicKey: Bytes.optional().describe('Unused since Liqo 1.2.'),
  csr: Bytes.optional().describe('Unused since Liqo 1.2.'),
  resourceSliceRef: LocalObjectReference.optional().describe('Unused since Liqo 1.2.'),
});
type RenewSpec = z.infer<typeof RenewSpec>;

const RenewStatus = z.object({
  authParams: AuthParams.optional().describe('The renewed credentials.'),
  recoveryIP: z
    .string()
    .max(45)
    .optional()
    .describe('Ours: where in its external range the provider hands out the certificate once it has ended here.'),
});
type RenewStatus = z.infer<typeof RenewStatus>;

export type Renew = KubeResource<RenewSpec, RenewStatus>;

export const renews = defineKind<Renew>({
  group: 'authentication.liqo.io',
  version: 'v1beta1',
  kind: 'Renew',
  plural: 'renews',
  namespaced: true,
  categories: ['liqo'],
  description: 'Asks the provider for a new control-plane certificate.',
  writers: {
    object: 'local renewer (consumer)',
    status: 'remote renewer (provider), copied back by the replicator',
  },
  columns: [ageColumn],
  spec: RenewSpec,
  status: RenewStatus,
});
