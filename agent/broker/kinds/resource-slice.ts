/** ResourceSlice: the capacity that a consumer asks for; at a provider, its copy by replication. */
import { annotation, label } from '#shared/domain/liqo-keys.ts';
import { resourceSlices } from '#shared/schema/liqo/resource-slice.ts';
import { isReplicated } from './derived.ts';
import { type BrokerKind, peeringLabels, watched } from './kind.ts';
import { pick, wrongParty } from './manifest.ts';

export const resourceSlice: BrokerKind<'ResourceSlice'> = {
  type: resourceSlices,
  accepted: {
    roles: ['consumer'],
    names: (set) => [set.peer],
    labels: [...peeringLabels, label.replication, label.remoteId],
    annotations: [annotation.createVirtualNode],
    members: { spec: ['class', 'providerClusterID', 'consumerClusterID', 'resources'] },
    check: (manifest, set, self) => wrongParty(manifest, { providerClusterID: set.peer, consumerClusterID: self }),
  },
  caches: watched(resourceSlices),
  isDerived: isReplicated,
  observed: ({ spec, status }) => ({
    ...pick(status, 'conditions', 'resources'),
    spec: pick(spec, 'class', 'resources'),
  }),
  takedown: { consumer: 'capacity', provider: 'capacity' },
  removedBy: 'agent',
  carriesPeering: true,
};
