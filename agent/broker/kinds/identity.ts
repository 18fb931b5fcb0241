/** Identity: at a consumer, its credentials for one provider. */
import { name } from '#shared/domain/liqo-keys.ts';
import { identities } from '#shared/schema/liqo/identity.ts';
import { isOfPeer } from './derived.ts';
import { type BrokerKind, type Json, peeringLabels, watched } from './kind.ts';
import { wrongParty } from './manifest.ts';

export const identity: BrokerKind<'Identity'> = {
  type: identities,
  accepted: {
    roles: ['consumer'],
    names: (set) => [name.controlPlaneIdentity(set.peer)],
    labels: peeringLabels,
    annotations: [],
    members: { spec: ['clusterID', 'type', 'authParams', 'namespace'] },
    check: (manifest, set) => wrongParty(manifest, { clusterID: set.peer }),
  },
  caches: watched(identities),
  // Those of slices, which a controller makes.
  isDerived: (object, set) => set.role === 'consumer' && isOfPeer(object, set),
  observed: ({ spec, status }) => ({
    kubeconfigReady: typeof (status?.kubeconfigSecretRef as Json | undefined)?.name === 'string',
    signedCRT: (spec?.authParams as Json | undefined)?.signedCRT,
  }),
  takedown: { consumer: 'identity' },
  removedBy: 'agent',
  carriesPeering: true,
};
