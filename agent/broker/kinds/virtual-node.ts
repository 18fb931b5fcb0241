/** VirtualNode: made by a controller from an accepted ResourceSlice, and removed by it. */
import { virtualNodes } from '#shared/schema/liqo/virtual-node.ts';
import { isVirtualNodeOf } from './derived.ts';
import { type BrokerKind, watched } from './kind.ts';
import { pick } from './manifest.ts';

export const virtualNode: BrokerKind<'VirtualNode'> = {
  type: virtualNodes,
  caches: watched(virtualNodes),
  isDerived: isVirtualNodeOf,
  observed: ({ status }) => pick(status, 'conditions'),
  takedown: { consumer: 'capacity', provider: 'capacity' },
  removedBy: 'controllers',
};
