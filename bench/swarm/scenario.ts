/**
 * Many simulated agents on one broker and a clock of our own: they enrol, idle for an hour, some peer meanwhile, then all lose their doorbell at
 * once. Each request is the real handler; what is measured is its time on this machine and what it does to the table.
 */
import { performance } from 'node:perf_hooks';
import { newAgentKeys } from '#control/testing/agent-keys.ts';
import type { SimulatedCluster } from '#control/testing/simulated-cluster.ts';
import { type CloudModelOptions, createCloudModel } from '../cost/cloud-model.ts';
import { ModelAgent } from '../cost/model-agent.ts';

const origin = { from: 'bench', requestId: 'rq' };
const keys = newAgentKeys();

export interface SwarmOptions extends CloudModelOptions {
  readonly clusters: number;
  readonly clustersPerTenant: number;
  readonly peerings: number;
  readonly idleMs: number;
  readonly random: () => number;
  readonly log: (line: string) => void;
}

export interface Phase {
  readonly name: string;
  readonly requests: number;
  /** Of this machine, everything included. */
  readonly wallSeconds: number;
  /** Of the clock that agents live by. */
  readonly clockSeconds: number;
  /** Of single requests, in milliseconds, ascending. */
  readonly times: readonly number[];
  readonly readUnits: number;
  readonly writeUnits: number;
  /** The partition with the most write units, and how many a second of the clock in its worst minute. */
  readonly hottest: { readonly partition: string; readonly writesPerSecond: number; readonly readsPerSecond: number };
}

export async function playSwarm(
  options: SwarmOptions,
): Promise<{ readonly phases: readonly Phase[]; readonly ready: number }> {
  const { clusters, clustersPerTenant, peerings, random, log } = options;
  const model = createCloudModel(options);
  const { clock, control, meter } = model;
  const agents: ModelAgent[] = [];
  const byConnection = new Map<string, ModelAgent>();
  const byName = new Map<string, ModelAgent>();
  const rung = new Set<ModelAgent>();
  model.onFrame = (connectionId, frame) => {
    const agent = byConnection.get(connectionId);
    agent?.hear(frame);
    if (agent) rung.add(agent);
  };
  let times: number[] = [];
  async function timed<T>(work: () => Promise<T>): Promise<T> {
    const startedAt = performance.now();
    const callsBefore = meter.tableCalls;
    const result = await work();
    // A pass in which an agent had nothing to say is no request.
    if (meter.tableCalls > callsBefore) times.push(performance.now() - startedAt);
    return result;
  }

  /** Heat per partition and minute of the clock. */
  let heat = new Map<string, { reads: number; writes: number }>();
  let minute = 0;
  let hottest: Phase['hottest'] = { partition: '', writesPerSecond: 0, readsPerSecond: 0 };
  function cool(): void {
    for (const [partition, { reads, writes }] of heat) {
      if (writes / 60 > hottest.writesPerSecond)
        hottest = { partition, writesPerSecond: writes / 60, readsPerSecond: reads / 60 };
    }
    heat = new Map();
  }
  const count = meter.table.bind(meter);
  meter.table = (pk, units) => {
    count(pk, units);
    const now = Math.floor(clock.now() / 60_000);
    if (now !== minute) cool();
    minute = now;
    const { reads, writes } = heat.get(pk) ?? { reads: 0, writes: 0 };
    heat.set(pk, { reads: reads + (units.reads ?? 0), writes: writes + (units.writes ?? 0) });
  };

  const phases: Phase[] = [];
  async function phase(name: string, work: () => Promise<void>): Promise<void> {
    times = [];
    cool();
    hottest = { partition: '', writesPerSecond: 0, readsPerSecond: 0 };
    const before = meter.units;
    const [startedAt, clockAt] = [performance.now(), clock.now()];
    await work();
    cool();
    const { readUnit, writeUnit } = meter.units;
    const done = {
      name,
      requests: times.length,
      wallSeconds: (performance.now() - startedAt) / 1_000,
      clockSeconds: (clock.now() - clockAt) / 1_000,
      times: [...times].sort((a, b) => a - b),
      readUnits: readUnit - before.readUnit,
      writeUnits: writeUnit - before.writeUnit,
      hottest,
    };
    phases.push(done);
    log(`${name}: ${done.requests} requests in ${done.wallSeconds.toFixed(1)} s`);
  }

  const peerOf =
    (tenant: string) =>
    (id: string): SimulatedCluster | undefined =>
      byName.get(`${tenant}/${id}`)?.cluster;
  async function step(agent: ModelAgent): Promise<void> {
    const before = agent.connectionId;
    await timed(() => agent.step(peerOf(agent.tenant)));
    if (agent.connectionId !== before) byConnection.set(agent.connectionId, agent);
  }

  await phase('enrol', async () => {
    for (let i = 0; i < clusters; i += 1) {
      const tenant = `tenant-${Math.floor(i / clustersPerTenant)}`;
      if (i % clustersPerTenant === 0) await control.tenants.bootstrap(tenant, origin);
      const admin = { ...origin, tenant, principal: 'api-key/bench', role: 'admin' } as const;
      const { token } = await control.clusters.createJoinToken(admin, `c-${i}`);
      const agent = new ModelAgent(model, token, { keys });
      agents.push(agent);
      byName.set(`${tenant}/c-${i}`, agent);
      await timed(() => agent.enroll());
      await timed(() => agent.connect());
      byConnection.set(agent.connectionId, agent);
      // A hundred clusters a second of the clock, and heartbeats that are spread as those of agents that began at different times.
      if (i % 100 === 99) clock.advance(1_000);
      agent.nextPingAt = clock.now() + random() * agent.intervals.heartbeatMs();
      await model.settle();
    }
  });

  const made: { readonly tenant: string; readonly id: string }[] = [];
  const phaseOf = async ({ tenant, id }: { readonly tenant: string; readonly id: string }): Promise<string> =>
    (await control.peerings.get({ ...origin, tenant, principal: 'api-key/bench', role: 'admin' }, id)).phase;

  await phase('peer', async () => {
    const busy = new Set<ModelAgent>();
    for (let i = 0; i < peerings; i += 1) {
      const tenantIndex = i % Math.ceil(clusters / clustersPerTenant);
      const first = tenantIndex * clustersPerTenant + 2 * Math.floor((i * clustersPerTenant) / clusters);
      const [consumer, provider] = [agents[first], agents[first + 1]];
      if (!consumer || !provider || consumer.tenant !== provider.tenant) continue;
      const { tenant } = consumer;
      const admin = { ...origin, tenant, principal: 'api-key/bench', role: 'admin' } as const;
      const requested = { consumer: consumer.id, provider: provider.id, resources: { cpu: '1' } };
      const { peering } = await timed(() => control.peerings.request(admin, requested));
      made.push({ tenant, id: peering.id });
      for (const agent of [consumer, provider]) busy.add(agent);
      if (i % 20 === 19) clock.advance(1_000);
    }
    for (let round = 0; round < 12; round += 1) {
      for (const agent of [...busy, ...rung]) await step(agent);
      rung.clear();
      await model.settle();
      clock.advance(500);
    }
  });
  let ready = 0;
  for (const each of made) if ((await phaseOf(each)) === 'Ready') ready += 1;

  const idle = async (forMs: number): Promise<void> => {
    const end = clock.now() + forMs;
    for (let now = clock.now(); now < end; now = clock.now()) {
      clock.advance(1_000);
      for (const agent of agents) if (Math.min(agent.nextPingAt, agent.rotateAt) <= clock.now()) await step(agent);
      if (Math.floor(clock.now() / 60_000) !== Math.floor(now / 60_000)) await timed(() => model.sweep());
      await model.settle();
    }
  };
  await phase('idle', () => idle(options.idleMs));

  await phase('reconnect storm', async () => {
    // Full jitter: everybody within two seconds at first, which is the worst that the platform's limits do not refuse here.
    const order = agents.map((agent) => ({ agent, at: random() * 2_000 })).sort((a, b) => a.at - b.at);
    const startedAt = clock.now();
    for (const { agent, at } of order) {
      clock.advance(Math.max(0, Math.floor(startedAt + at - clock.now())));
      await timed(() => agent.connect());
      byConnection.set(agent.connectionId, agent);
    }
    await model.settle();
  });
  return { phases, ready };
}

export const quantile = (ascending: readonly number[], q: number): number =>
  ascending[Math.min(ascending.length - 1, Math.floor(q * ascending.length))] ?? Number.NaN;
