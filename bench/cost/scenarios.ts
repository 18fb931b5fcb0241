/** What is counted: an idle stack, an idle cluster, an idle peering, one peering made and ended, a thousand watch events. */
import { newAgentKeys } from '#control/testing/agent-keys.ts';
import { type CloudModel, type CloudModelOptions, createCloudModel } from './cloud-model.ts';
import { type Reading, read, scaled, since } from './meter.ts';
import { ModelAgent } from './model-agent.ts';

export const dayMs = 24 * 3_600_000;
const tenant = 'acme';
const origin = { from: 'bench', requestId: 'rq' };
const keys = newAgentKeys();

export interface Stage {
  readonly model: CloudModel;
  readonly agents: ReadonlyMap<string, ModelAgent>;
  readonly apiKey: string;
  join(id: string): Promise<ModelAgent>;
  peer(consumer: string, provider: string): Promise<string>;
  unpeer(id: string): Promise<void>;
  /** Lets time pass: agents and the schedule do what is due. */
  pass(forMs: number): Promise<void>;
  /** What happened meanwhile. */
  measure(work: () => Promise<void>): Promise<Reading>;
}

export async function openStage(options: CloudModelOptions = {}): Promise<Stage> {
  const model = createCloudModel(options);
  const { control, clock } = model;
  const apiKey = (await control.tenants.bootstrap(tenant, origin))?.secret ?? '';
  const agents = new Map<string, ModelAgent>();
  const peerOf = (id: string) => agents.get(id)?.cluster;
  model.onFrame = (connectionId, frame) => {
    for (const agent of agents.values()) if (agent.connectionId === connectionId) agent.hear(frame);
  };
  let nextSweepAt = clock.now() + 60_000;
  const admin = { ...origin, tenant, principal: 'api-key/bench', role: 'admin' } as const;
  const api = (method: string, path: string, body?: unknown) =>
    model.http({ method, path, authorization: `Bearer ${apiKey}`, ...(body === undefined ? {} : { body }) });

  async function stepAll(): Promise<void> {
    for (const agent of agents.values()) await agent.step(peerOf);
    await model.settle();
  }

  async function reach(phase: string, id: string): Promise<void> {
    for (let round = 0; round < 400; round += 1) {
      await stepAll();
      const view = await peek(id);
      if (view === phase) return;
      clock.advance(250);
      if (clock.now() >= nextSweepAt) await sweep();
    }
    throw new Error(`the peering is not ${phase} after ${400 * 0.25} s`);
  }

  /** For the bench, not billed: read beside the meter. */
  async function peek(id: string): Promise<string> {
    const before = read(model.meter);
    const { phase } = await control.peerings.get(admin, id);
    unread = since(before, read(model.meter)).units.readUnit + unread;
    return phase;
  }
  let unread = 0;

  async function sweep(): Promise<void> {
    nextSweepAt = clock.now() + 60_000;
    await model.sweep();
    await model.settle();
  }

  return {
    model,
    agents,
    apiKey,
    async join(id) {
      const { token } = await control.clusters.createJoinToken(admin, id);
      const agent = new ModelAgent(model, token, { keys });
      agents.set(id, agent);
      await agent.enroll();
      await agent.connect();
      await stepAll();
      return agent;
    },
    async peer(consumer, provider) {
      const { status, body } = await api('POST', '/v1/peerings', { consumer, provider, resources: { cpu: '2' } });
      if (status >= 300) throw new Error(`peer: ${status} ${JSON.stringify(body)}`);
      await reach('Ready', body.id);
      return body.id;
    },
    async unpeer(id) {
      const { status, body } = await api('DELETE', `/v1/peerings/${id}`);
      if (status >= 300) throw new Error(`unpeer: ${status} ${JSON.stringify(body)}`);
      await reach('Gone', id);
    },
    async pass(forMs) {
      const end = clock.now() + forMs;
      for (;;) {
        const times = [...agents.values()].flatMap(({ nextPingAt, rotateAt }) => [nextPingAt, rotateAt]);
        const next = Math.min(end, nextSweepAt, ...times);
        clock.advance(Math.max(0, next - clock.now()));
        await stepAll();
        if (clock.now() >= nextSweepAt) await sweep();
        if (clock.now() >= end) return;
      }
    },
    async measure(work) {
      for (const agent of agents.values()) agent.settleConnection();
      const before = read(model.meter);
      unread = 0;
      await work();
      for (const agent of agents.values()) agent.settleConnection();
      const { units, calls } = since(before, read(model.meter));
      return { calls, units: { ...units, readUnit: units.readUnit - unread } };
    },
  };
}

const minus = (a: Reading, b: Reading): Reading => since(b, a);

export interface CostReadings {
  /** A day of a broker with one tenant and no connected agent. */
  readonly stackDay: Reading;
  /** What each connected cluster adds to that. */
  readonly clusterDay: Reading;
  /** What a peering that is Ready and idle adds for its two clusters together. */
  readonly peeringDay: Reading;
  /** What its link adds to that, whose figures both agents report every five minutes. */
  readonly linkDay: Reading;
  /** The part of this that the samples for graphs take. */
  readonly samplesDay: Reading;
  readonly peeringSetUp: Reading;
  readonly peeringTornDown: Reading;
  /** Each changes what the broker is told, and is reported alone. */
  readonly thousandWatchEvents: Reading;
}

/** `days`: shorter for tests; the readings are per day all the same. */
export async function measureCost(days = 1): Promise<CostReadings> {
  const span = days * dayMs;
  const perDay = (reading: Reading): Reading => scaled(reading, 1 / days);
  const empty = await openStage();
  const stackDay = perDay(await empty.measure(() => empty.pass(span)));

  const idle = await openStage();
  await idle.join('rome');
  await idle.join('milan');
  const joinedDay = perDay(await idle.measure(() => idle.pass(span)));

  const stage = await openStage();
  await stage.join('rome');
  await stage.join('milan');
  // Caches of the process are as cold as between two calls of a quiet tenant.
  await stage.pass(600_000);
  let id = '';
  const peeringSetUp = await stage.measure(async () => {
    id = await stage.peer('rome', 'milan');
  });
  const thousandWatchEvents = await stage.measure(() => flap(stage, 1_000));
  await stage.pass(600_000);
  const peeredDay = perDay(await stage.measure(() => stage.pass(span)));
  await withLink(stage, id, reportMs, true);
  const [plainDay, measuredDay] = [
    perDay(await stage.measure(() => withLink(stage, id, span, false))),
    perDay(await stage.measure(() => withLink(stage, id, span, true))),
  ];
  const peeringTornDown = await stage.measure(() => stage.unpeer(id));
  return {
    stackDay,
    clusterDay: scaled(minus(joinedDay, stackDay), 0.5),
    peeringDay: minus(peeredDay, joinedDay),
    linkDay: minus(measuredDay, peeredDay),
    samplesDay: minus(measuredDay, plainDay),
    peeringSetUp,
    peeringTornDown,
    thousandWatchEvents,
  };
}

const reportMs = 300_000;

/** Every five minutes both agents report that figures of the link have moved, with the minutes in between or without. */
async function withLink(stage: Stage, peering: string, forMs: number, isMeasured: boolean): Promise<void> {
  for (let at = 0; at < forMs / reportMs; at += 1) {
    await stage.pass(reportMs);
    const minute = Math.floor(stage.model.clock.now() / 60_000) * 60;
    const figures = { rttMicros: 12_345, packetLoss: 0, received: 123_456, sent: 123_456 };
    const used = { cpuGranted: 4_000, cpuUsed: 1_500, memoryGranted: 8 * 2 ** 30, memoryUsed: 2 ** 30 };
    for (const { cluster } of stage.agents.values()) {
      const of = cluster.id === 'milan' ? { ...figures, ...used } : figures;
      // One that is too old is not kept.
      const minutes = isMeasured ? [5, 4, 3, 2, 1] : [3_000];
      cluster.samples = [{ peering, samples: minutes.map((ago) => ({ at: minute - ago * 60, ...of })) }];
      cluster.touch(minute);
      await cluster.report();
      await stage.model.settle();
    }
  }
}

/** The provider's grant changes that often, and the consumer's agent says so each time. */
export async function flap(stage: Stage, times: number): Promise<void> {
  const consumer = stage.agents.get('rome');
  if (consumer === undefined) throw new Error('no agent to flap');
  for (let i = 0; i < times; i += 1) {
    consumer.cluster.touch(i);
    await consumer.step((id) => stage.agents.get(id)?.cluster);
    await stage.model.settle();
    stage.model.clock.advance(100);
  }
}
