/** Node: made by the virtual kubelet of a VirtualNode, and removed by it. */
import { nodes } from '#shared/domain/core-kinds.ts';
import { label, virtualNodeType } from '#shared/domain/liqo-keys.ts';
import { isVirtualNodeOf } from './derived.ts';
import { type AnyObject, type BrokerKind, type Selected, watched } from './kind.ts';
import { pick } from './manifest.ts';

export const node: BrokerKind<'Node'> = {
  type: nodes,
  caches: watched(nodes, { labelSelector: `${label.type}=${virtualNodeType}` }),
  isDerived: isVirtualNodeOf,
  observed: readiness,
  takedown: { consumer: 'capacity', provider: 'capacity' },
  removedBy: 'controllers',
};

function readiness({ status }: AnyObject): Selected<'Node'> {
  const conditions =
    (status?.conditions as { type: string; status: string; reason?: string; message?: string }[] | undefined) ?? [];
  const ready = conditions.find(({ type }) => type === 'Ready');
  return { ready: ready?.status === 'True', ...pick({ ...ready }, 'reason', 'message') };
}
