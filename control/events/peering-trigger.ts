/**
 * Events as hints: each one that may matter to peerings makes the coordinator look again. The use cases looked already; this is for crashes in
 * between. Unmet requests of other clusters are retried here only, so that the cluster that joins or reports does not wait for them.
 */
import type { Coordinator } from '../model/coordinator.ts';
import type { InClusterRequests } from '../model/peering-requests.ts';
import type { Subscriber } from '../ports/event-bus.ts';
import type { EventType } from './types.ts';

export const peeringTypes = [
  'cluster.observed',
  'cluster.facts-changed',
  'cluster.joined',
  'cluster.left',
  'peering.requested',
  'peering.changed',
  'peering.unpeer-requested',
  'invitation.revoked',
] as const satisfies readonly EventType[];

interface Reacting {
  readonly coordinator: Pick<Coordinator, 'look' | 'lookAtCluster'>;
  readonly inClusterRequests: Pick<InClusterRequests, 'reviewAbout'>;
}

export const peeringTrigger = ({ coordinator, inClusterRequests }: Reacting): Subscriber => ({
  name: 'peerings',
  types: peeringTypes,
  async handle({ stream: tenant, subject, data }, signal) {
    const [kind, id = ''] = subject.split('/', 2);
    if (kind === 'peering') {
      await coordinator.look(tenant, id, signal);
      return;
    }
    if (!Array.isArray(data.peerings)) {
      const cluster = { tenant, clusterId: id };
      await coordinator.lookAtCluster(cluster, signal);
      await inClusterRequests.reviewAbout(cluster, signal);
      return;
    }
    for (const peering of data.peerings) await coordinator.look(tenant, String(peering), signal);
  },
});
