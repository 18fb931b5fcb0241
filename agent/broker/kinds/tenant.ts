/** Tenant: at a provider, the consumer with its key and certificate request. */
import { isthmusAnnotation } from '#shared/domain/liqo-keys.ts';
import { tenants } from '#shared/schema/liqo/tenant.ts';
import { type BrokerKind, type Json, peeringLabels, watched } from './kind.ts';
import { pick, wrongParty } from './manifest.ts';

export const tenant: BrokerKind<'Tenant'> = {
  type: tenants,
  accepted: {
    roles: ['provider'],
    names: (set) => [set.peer],
    labels: peeringLabels,
    annotations: [isthmusAnnotation.keySuccession],
    members: { spec: ['clusterID', 'publicKey', 'csr', 'signature', 'authzPolicy', 'proxyURL'] },
    check: (manifest, set) => wrongParty(manifest, { clusterID: set.peer }),
  },
  caches: watched(tenants),
  isDerived: () => false,
  observed: ({ spec, status }) => ({
    ...pick(status, 'tenantNamespace', 'conditions'),
    ...authParams(status),
    ...pick(spec, 'tenantCondition'),
  }),
  takedown: { provider: 'rights' },
  removedBy: 'agent',
  carriesPeering: true,
};

/** Certificates, the CA and the URL are public, tokens are sealed to the consumer; AWS keys, which Liqo also keeps here, are neither. */
const authParams = (status: Json | undefined): { readonly authParams?: unknown } =>
  status?.authParams === undefined
    ? {}
    : {
        authParams: pick(
          status.authParams as Json,
          'ca',
          'signedCRT',
          'apiServer',
          'proxyURL',
          'sealedToken',
          'tokenExpiration',
        ),
      };
