/**
 * One sweep of a broker with very many tenants, for few of which something is due: 10,000 peerings whose clusters have all fallen silent, in
 * 1,000 of 1,000,000 tenants (`--tenants N`) on the memory store, and 200 in 20 of 2,000 on DynamoDB Local. The use cases are the real ones;
 * the tenants without work are their items in the list of tenants.
 */
import { jitteredBackoff } from '#control/adapters/dynamodb/backoff.ts';
import { createDynamoDbStore } from '#control/adapters/dynamodb/dynamodb-store.ts';
import { createMemoryStore } from '#control/adapters/memory/memory-store.ts';
import type { Store } from '#control/ports/store.ts';
import { key } from '#control/store/keys.ts';
import { adminOf, createBrokerClusters } from '#control/testing/broker-clusters.ts';
import { dueItems } from '#control/testing/due-items.ts';
import { ManualClock } from '#shared/ports/clock.ts';
import { systemClock } from '#shared/ports/system-clock.ts';
import { startDynamoDbLocal } from '#test/aws/dynamodb-local.ts';
import { Meter, read, since, tableRoundTripMs } from '../cost/meter.ts';
import { meteredStore } from '../cost/metered-store.ts';
import { type BenchOptions, type BenchResult, thisMachine } from '../result.ts';

interface Size {
  readonly tenants: number;
  /** With ten peerings each. */
  readonly withWork: number;
}

interface Swept {
  readonly due: number;
  readonly seconds: number;
  readonly calls: number;
  readonly reads: number;
  readonly writes: number;
}

const names = ['a', 'b', 'c', 'd', 'e'] as const;
const pairs = names.flatMap((consumer, i) =>
  [1, 2].map((step) => ({ consumer, provider: names[(i + step) % names.length] ?? 'a' })),
);
/** Longer than a silent agent counts as online. */
const silenceMs = 60 * 60_000;
/** `tenantsAtOnce` in each of the shards of `control/store/due.ts`. */
const atOnce = 16;

async function measure(inner: Store, clock: ManualClock, size: Size, log: BenchOptions['log']) {
  const meter = new Meter();
  const { control, join } = createBrokerClusters({ clock, deps: { store: meteredStore(inner, meter) } });
  log(`${size.tenants} tenants`);
  for (let i = 0; i < size.tenants; i += 50) {
    const some = Array.from({ length: Math.min(50, size.tenants - i) }, (_, n) => key.tenantName(`idle-${i + n}`));
    await inner.transact(some.map((at) => ({ op: 'put', ...at, value: {} })));
  }
  log(`${size.withWork} of them with ${pairs.length} peerings each`);
  for (let i = 0; i < size.withWork; i += 1) {
    const tenant = `busy-${i}`;
    for (const id of names) await join(id, { tenant });
    for (const pair of pairs) await control.peerings.request(adminOf(tenant), { ...pair, resources: { cpu: '1' } });
  }
  const sweep = async (): Promise<Swept> => {
    const due = (await dueItems(inner)).filter(({ sk }) => Number(sk.split('/')[0]) <= clock.now()).length;
    const [before, callsBefore, startedAt] = [read(meter), meter.tableCalls, performance.now()];
    await control.peerings.sweep();
    const seconds = (performance.now() - startedAt) / 1_000;
    const { units } = since(before, read(meter));
    return { due, seconds, calls: meter.tableCalls - callsBefore, reads: units.readUnit, writes: units.writeUnit };
  };
  const idle = await sweep();
  clock.advance(silenceMs);
  const busy = await sweep();
  return { idle, busy, left: (await sweep()).due };
}

export async function run({ root, tenants = 1_000_000, log }: BenchOptions): Promise<BenchResult> {
  const clock = new ManualClock();
  const memory = await measure(createMemoryStore({ clock }), clock, { tenants, withWork: 1_000 }, log);
  log('the same on DynamoDB Local, smaller');
  const dynamodb = await startDynamoDbLocal();
  try {
    const now = new ManualClock(Date.now());
    const backoff = jitteredBackoff(systemClock, Math.random);
    const store = createDynamoDbStore({
      client: dynamodb.client(),
      tableName: await dynamodb.newTable(),
      clock: now,
      backoff,
    });
    const local = await measure(store, now, { tenants: 2_000, withWork: 20 }, log);
    await store.close();
    const { idle, busy, left } = memory;
    return {
      name: 'sweep',
      unit: `reads of the table that a sweep makes with ${tenants} tenants and nothing due`,
      value: idle.calls,
      samples: [idle.calls],
      phases: {
        'due peerings in one sweep': busy.due,
        'left after it': left,
        'seconds of this process': busy.seconds,
        'calls of the table for each': busy.calls / busy.due,
        'read units for each': busy.reads / busy.due,
        'write units for each': busy.writes / busy.due,
        [`seconds of a function, at ${tableRoundTripMs} ms a call and ${atOnce} at a time`]:
          busy.seconds + (busy.calls * tableRoundTripMs) / 1_000 / atOnce,
        'on DynamoDB Local: calls with nothing due': local.idle.calls,
        'on DynamoDB Local: due peerings': local.busy.due,
        'on DynamoDB Local: left after it': local.left,
        'on DynamoDB Local: calls for each': local.busy.calls / local.busy.due,
        'on DynamoDB Local: seconds': local.busy.seconds,
      },
      machine: thisMachine(root),
    };
  } finally {
    await dynamodb.stop();
  }
}
