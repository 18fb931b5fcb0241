/** authentication.liqo.io Tenant: a consumer as its provider sees it. Lives on the provider, in the tenant namespace. */
import * as z from 'zod';
import type { KubeResource } from '#shared/domain/kube-object.ts';
import { AuthParams, Bytes, ClusterId, Conditions } from '../definition/fields.ts';
import { ageColumn, defineKind, immutable } from '../definition/kind.ts';

const AuthzPolicy = z.enum(['KeysExchange', 'TolerateNoHandshake']);

export const TenantCondition = z.enum(['Active', 'Cordoned', 'Drained']);
export type TenantCondition = z.infer<typeof TenantCondition>;

const TenantSpec = z.object({
  clusterID: ClusterId.meta(immutable('clusterID')).describe('Cluster ID of the consumer.'),
  authzPolicy: AuthzPolicy.default('KeysExchange').describe(
    'KeysExchange: the consumer proves its key by signing a nonce. TolerateNoHandshake: no proof, no certificate.',
  ),
  publicKey: Bytes.optional().describe('PEM (PKIX) public key of the consumer.'),
  csr: Bytes.optional().describe('PEM certificate signing request of the consumer.'),
  signature: Bytes.optional().describe('The nonce, signed by the consumer.'),
  proxyURL: z.string().optional().describe('Proxy through which the consumer reaches this API server.'),
  tenantCondition: TenantCondition.default('Active').describe(
    'Desired, although the name suggests status. Cordoned: nothing new. Drained: everything is taken back.',
  ),
});
type TenantSpec = z.infer<typeof TenantSpec>;

export const TenantStatus = z.object({
  tenantNamespace: z.string().optional().describe('Namespace of this consumer on the provider.'),
  authParams: AuthParams.optional().describe('What the consumer needs to log in; absent under TolerateNoHandshake.'),
  conditions: Conditions.optional().describe(
    'Handshake, only while it fails: why the consumer gets no credentials. InBandToken, of a consumer that is to come through the link: False while it does not show the tokens that the proxy there asks for, True while it needs none or comes by the front door. Credentials, True where the provider had a choice: which kind it gives, and why.',
  ),
});
export const tenantConditionType = {
  handshake: 'Handshake',
  inBandToken: 'InBandToken',
  credentials: 'Credentials',
} as const;

export type TenantStatus = z.infer<typeof TenantStatus>;

export type Tenant = KubeResource<TenantSpec, TenantStatus>;

export const tenants = defineKind<Tenant>({
  group: 'authentication.liqo.io',
  version: 'v1beta1',
  kind: 'Tenant',
  plural: 'tenants',
  namespaced: true,
  shortNames: ['tn'],
  categories: ['liqo'],
  description: 'A consumer as its provider sees it. Lives on the provider.',
  writers: { object: 'broker, liqoctl or a user', status: 'tenant controller (provider)' },
  columns: [{ name: 'Condition', type: 'string', jsonPath: '.spec.tenantCondition' }, ageColumn],
  spec: TenantSpec,
  status: TenantStatus,
});
