/** NamespaceMap: which namespace is called what at the provider; a controller of the consumer makes it. */
import { namespaceMaps } from '#shared/schema/liqo/namespace-map.ts';
import { isReplicated } from './derived.ts';
import { type BrokerKind, watched } from './kind.ts';

export const namespaceMap: BrokerKind<'NamespaceMap'> = {
  type: namespaceMaps,
  caches: watched(namespaceMaps),
  isDerived: isReplicated,
  observed: () => ({}),
  takedown: { consumer: 'identity', provider: 'capacity' },
  removedBy: 'agent',
};
