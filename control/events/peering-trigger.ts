/** Events as hints: each one that may matter to peerings makes the coordinator look again. The use cases looked already; this is for crashes in between. */
import type { Coordinator } from '../peerings/coordinate.ts';
import type { Subscriber } from '../ports/event-bus.ts';
import type { EventType } from './types.ts';

const types: readonly EventType[] = [
  'cluster.observed',
  'cluster.facts-changed',
  'cluster.joined',
  'cluster.left',
  'peering.requested',
  'peering.changed',
  'peering.unpeer-requested',
  'invitation.revoked',
];

export const peeringTrigger = (coordinator: Coordinator): Subscriber => ({
  name: 'peerings',
  types,
  async handle({ stream: tenant, subject, data }, signal) {
    const [kind, id = ''] = subject.split('/', 2);
    if (kind === 'peering') {
      await coordinator.look(tenant, id, signal);
      return;
    }
    if (!Array.isArray(data.peerings)) return coordinator.lookAtCluster({ tenant, clusterId: id }, signal);
    for (const peering of data.peerings) await coordinator.look(tenant, String(peering), signal);
  },
});
