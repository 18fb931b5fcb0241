/** Two tenants with a simulated cluster each, open to each other: acme consumes, bolt provides. */
import type { Caller } from '../access/caller.ts';
import type { PeeringView, Phase } from '../model/peering.ts';
import { adminOf, type BrokerClusters, type BrokerClustersOptions, createBrokerClusters } from './broker-clusters.ts';
import { openFacts, type SimulatedCluster } from './simulated-cluster.ts';

/** Accepts peers of any tenant; how much one gets is up to the tests. */
export const worldlyFacts = {
  ...openFacts,
  policies: openFacts.policies.map((policy) => ({ ...policy, tenants: ['*'] })),
};

export const acme: Caller = adminOf('acme');
export const bolt: Caller = adminOf('bolt');
export const corp: Caller = adminOf('corp');

export interface TwoTenants extends BrokerClusters {
  readonly rome: SimulatedCluster;
  readonly milan: SimulatedCluster;
  /** Makes an invitation of milan and redeems it for rome. */
  invited(limits?: Readonly<Record<string, string>>): Promise<PeeringView>;
  published(): Promise<void>;
  /** Lets everybody work until both tenants see that phase. */
  untilPhase(id: string, phase: Phase, forMs?: number): Promise<void>;
  view(caller: Caller, id: string): Promise<PeeringView>;
}

export async function twoTenants(options: BrokerClustersOptions = {}): Promise<TwoTenants> {
  const clusters = createBrokerClusters(options);
  const { control } = clusters;
  const rome = await clusters.join('rome', { tenant: 'acme', facts: worldlyFacts });
  const milan = await clusters.join('milan', { tenant: 'bolt', facts: worldlyFacts });
  const view = (caller: Caller, id: string) => control.peerings.get(caller, id);
  return {
    ...clusters,
    rome,
    milan,
    view,
    async invited(limits = { cpu: '4' }) {
      const { code } = await control.invitations.create(bolt, { cluster: 'milan', limits });
      return (await control.invitations.redeem(acme, { code, consumer: 'rome' })).peering;
    },
    async published() {
      await control.directory.publish(bolt, { cluster: 'milan', region: 'eu-1', labels: { tier: 'gold' } });
    },
    async untilPhase(id, phase, forMs) {
      await clusters.until(async () => {
        const phases = [(await view(acme, id)).phase, (await view(bolt, id)).phase];
        return phases.every((seen) => seen === phase);
      }, forMs);
    },
  };
}
