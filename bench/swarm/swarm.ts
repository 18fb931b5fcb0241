/** `npm run bench -- swarm --clusters N`: N agents on the memory store, and a fiftieth of them on DynamoDB Local. */
import { jitteredBackoff } from '#control/adapters/dynamodb/backoff.ts';
import { createDynamoDbStore } from '#control/adapters/dynamodb/dynamodb-store.ts';
import { ManualClock } from '#shared/ports/clock.ts';
import { systemClock } from '#shared/ports/system-clock.ts';
import { startDynamoDbLocal } from '#test/aws/dynamodb-local.ts';
import { Meter } from '../cost/meter.ts';
import { meterClient } from '../cost/metered-client.ts';
import { type BenchOptions, type BenchResult, thisMachine } from '../result.ts';
import { type Phase, playSwarm, quantile } from './scenario.ts';

/** The same course of events each time. */
export function seeded(seed: number): () => number {
  let state = seed;
  return () => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return state / 2 ** 32;
  };
}

const figures = (where: string, { name, times, requests, wallSeconds, hottest, ...units }: Phase) => ({
  [`${where}, ${name}: requests a second of one core`]: requests / wallSeconds,
  [`${where}, ${name}: P50 ms`]: quantile(times, 0.5),
  [`${where}, ${name}: P99 ms`]: quantile(times, 0.99),
  [`${where}, ${name}: write units a second of the clock`]: units.writeUnits / Math.max(1, units.clockSeconds),
  [`${where}, ${name}: hottest partition, write units a second in its worst minute (${hottest.partition})`]:
    hottest.writesPerSecond,
});

export async function run({ root, clusters = 10_000, log }: BenchOptions): Promise<BenchResult> {
  log(`${clusters} clusters on the memory store`);
  const common = { clustersPerTenant: 100, random: seeded(1), log };
  const memory = await playSwarm({ ...common, clusters, peerings: Math.ceil(clusters / 20), idleMs: 3_600_000 });
  const few = Math.max(20, Math.ceil(clusters / 50));
  log(`${few} clusters on DynamoDB Local`);
  const dynamodb = await startDynamoDbLocal();
  try {
    const meter = new Meter();
    const clock = new ManualClock(Date.now());
    const store = createDynamoDbStore({
      client: meterClient(dynamodb.client(), meter),
      tableName: await dynamodb.newTable(),
      clock,
      backoff: jitteredBackoff(systemClock, Math.random),
    });
    const table = await playSwarm({
      ...common,
      clusters: few,
      peerings: Math.ceil(few / 20),
      idleMs: 600_000,
      clock,
      meter,
      store,
    });
    await store.close();
    const all = [
      ...memory.phases.map((phase) => figures('memory', phase)),
      ...table.phases.map((phase) => figures('DynamoDB Local', phase)),
    ];
    const idle = memory.phases.find(({ name }) => name === 'idle');
    const rate = (idle?.requests ?? 0) / (idle?.wallSeconds ?? 1);
    const raw = [memory, table].map(({ phases, ready }) => ({
      ready,
      phases: phases.map(({ times, ...phase }) => ({
        ...phase,
        p50: quantile(times, 0.5),
        p99: quantile(times, 0.99),
      })),
    }));
    return {
      name: 'swarm',
      unit: `requests a second of one core, ${clusters} idle clusters`,
      value: rate,
      samples: [rate],
      phases: { clusters, 'peerings ready': memory.ready, ...Object.assign({}, ...all) },
      raw,
      machine: thisMachine(root),
    };
  } finally {
    await dynamodb.stop();
  }
}
