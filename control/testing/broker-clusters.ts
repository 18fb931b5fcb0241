/** A broker and simulated clusters on a manual clock: what tests of the control plane play with. */
import { ManualClock } from '#shared/ports/clock.ts';
import { silentLog } from '#shared/ports/log.ts';
import type { ClusterFacts } from '#shared/schema/protocol/agent-protocol.ts';
import type { Caller } from '../access/caller.ts';
import { createMemoryStore } from '../adapters/memory/memory-store.ts';
import { type Control, createControl } from '../control.ts';
import type { ControlDeps } from '../model/deps.ts';
import type { Store } from '../ports/store.ts';
import { type AgentKeys, newAgentKeys, signRequest } from './agent-keys.ts';
import { countingIds } from './counting-ids.ts';
import { openFacts, SimulatedCluster } from './simulated-cluster.ts';

export const brokerUrl = 'https://broker.test:8443';
export const origin = { from: '192.0.2.1', requestId: 'rq-1' };

export const adminOf = (tenant: string): Caller => ({ ...origin, tenant, principal: 'api-key/ak_test', role: 'admin' });

export interface BrokerClustersOptions {
  readonly clock?: ManualClock;
  /** Wraps the store, to make trouble. */
  readonly wrap?: (store: Store) => Store;
  readonly deps?: Partial<ControlDeps>;
}

export interface BrokerClusters {
  readonly clock: ManualClock;
  readonly store: Store;
  readonly control: Control;
  readonly clusters: ReadonlyMap<string, SimulatedCluster>;
  /** Clusters that were notified, in order. */
  readonly rings: { readonly tenant: string; readonly clusterId: string; readonly revision: number }[];
  join(id: string, options?: { readonly tenant?: string; readonly facts?: ClusterFacts }): Promise<SimulatedCluster>;
  /** Every agent fetches, works and reports once. */
  step(): Promise<void>;
  /** Steps, sweeps and lets time pass until `done`, at most `forMs` of the clock. */
  until(done: () => Promise<boolean> | boolean, forMs?: number): Promise<void>;
}

const keys: AgentKeys = newAgentKeys();

export function createBrokerClusters({
  clock = new ManualClock(),
  wrap = (store) => store,
  deps = {},
}: BrokerClustersOptions = {}): BrokerClusters {
  const store = deps.store ?? wrap(createMemoryStore({ clock }));
  const rings: BrokerClusters['rings'] = [];
  const control = createControl({
    store,
    clock,
    ids: countingIds(),
    log: silentLog,
    channel: { ring: ({ tenant, clusterId }, revision) => void rings.push({ tenant, clusterId, revision }) },
    broker: () => ({ url: brokerUrl }),
    ...deps,
  });
  const clusters = new Map<string, SimulatedCluster>();

  async function step(): Promise<void> {
    for (const cluster of clusters.values()) {
      await cluster.pull();
      cluster.work((id) => clusters.get(id));
      await cluster.report();
    }
  }

  return {
    clock,
    store,
    control,
    clusters,
    rings,
    step,
    async join(id, { tenant = 'default', facts = openFacts } = {}) {
      await control.tenants.bootstrap(tenant, origin);
      const { token } = await control.clusters.createJoinToken(adminOf(tenant), id);
      const { secret } = JSON.parse(Buffer.from(token.slice('isthmus1.'.length), 'base64url').toString()) as {
        secret: string;
      };
      const body = { clusterId: id, token: secret, publicKey: keys.publicKey, facts };
      const path = '/v1/agent/enroll';
      const request = {
        keys,
        tenant,
        clusterId: id,
        audience: brokerUrl,
        now: clock.now(),
        path,
        body: JSON.stringify(body),
      };
      await control.clusters.enroll(body, await signRequest(request));
      const cluster = new SimulatedCluster(id, tenant, () => control);
      cluster.facts = facts;
      clusters.set(id, cluster);
      return cluster;
    },
    async until(done, forMs = 120_000) {
      const end = clock.now() + forMs;
      while (!(await done())) {
        if (clock.now() >= end) throw new Error(`not done after ${forMs} ms`);
        await step();
        clock.advance(500);
        await control.peerings.sweep();
      }
    },
  };
}
