/** A consumer that makes copies in its tenant namespace as fast as it can: reviews at the same instant, lists that answer late and in any order. */
import fc from 'fast-check';
import { expect, test } from 'vitest';
import type { Review } from '#agent/admission/review.ts';
import { createHooks } from '#agent/webhooks.ts';
import type { Cluster } from '#kube/model/types.ts';
import { sharedByMany } from '#shared/async/abort-scope.ts';
import type { KubeObject } from '#shared/domain/kube-object.ts';
import { ManualClock } from '#shared/ports/clock.ts';
import { namespaceMaps } from '#shared/schema/liqo/namespace-map.ts';
import { renews } from '#shared/schema/liqo/renew.ts';
import { resourceSlices } from '#shared/schema/liqo/resource-slice.ts';
import { MemoryCluster } from './memory-cluster.ts';

const most = 100;
const namespace = 'liqo-tenant-rome';
const labels = {
  'liqo.io/replicated': 'true',
  'liqo.io/replication': 'false',
  'liqo.io/originID': 'rome',
  'liqo.io/remote-cluster-id': 'rome',
};
const kinds = [
  { path: '/validate/resourceslices', type: resourceSlices },
  { path: '/validate/replicas', type: namespaceMaps },
  { path: '/validate/replicas', type: renews },
] as const;
type Kind = (typeof kinds)[number];

/** Lists answer when they are told to, with what was stored when they were asked for. */
function fixture() {
  const stop = new AbortController();
  const clock = new ManualClock();
  const memory = new MemoryCluster(clock, () => 0);
  memory.create({ apiVersion: 'v1', kind: 'Namespace', metadata: { name: namespace } } as never);
  const opened = memory.open('own', sharedByMany(stop.signal)) as Cluster;
  const late: (() => void)[] = [];
  const { list } = opened.api;
  const api = Object.assign(opened.api, {
    list: async (...args: Parameters<typeof list>) => {
      const found = await list.apply(opened.api, args);
      return new Promise((resolve) => void late.push(() => resolve(found)));
    },
  });
  const hooks = createHooks({ cluster: { ...opened, api } as Cluster, clusterId: 'milan', clock });
  const copy = ({ type }: Kind, name: string): KubeObject =>
    ({
      apiVersion: `${type.group}/${type.version}`,
      kind: type.kind,
      metadata: { namespace, name, labels },
      spec: {},
    }) as KubeObject;
  const ask = async (kind: Kind, name: string, dryRun = false): Promise<boolean> => {
    const object = copy(kind, name);
    const user = { name: 'rome', groups: ['liqo.io'] };
    const review: Review = { uid: name, operation: 'CREATE', name, namespace, dryRun, user, object };
    const hook = hooks.routes.get(kind.path);
    const verdict = await hook?.(review, stop.signal);
    return verdict?.allowed === true;
  };
  /** As the API server does it: stored when it was let in. */
  const create = async (kind: Kind, name: string): Promise<boolean> => {
    const isAllowed = await ask(kind, name);
    if (isAllowed && memory.now(kind.type as never, { namespace, name }) === undefined)
      memory.create(copy(kind, name) as never);
    return isAllowed;
  };
  const settled = () => new Promise((resolve) => setImmediate(resolve));
  async function answerAll(next: () => number): Promise<void> {
    await settled();
    while (late.length > 0) {
      late.splice(next() % late.length, 1)[0]?.();
      await settled();
    }
  }
  const count = (kind: Kind): number => memory.all(kind.type as never).length;
  return { clock, memory, late, ask, create, copy, count, answerAll, settled, end: () => stop.abort() };
}

test('in whichever order copies are asked for and lists answer, there are never more than a hundred of a kind', async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.nat(kinds.length - 1),
      fc.integer({ min: 80, max: 100 }),
      fc.array(fc.integer({ min: 1, max: 30 }), { minLength: 1, maxLength: 4 }),
      fc.array(fc.nat(1_000), { minLength: 1, maxLength: 50 }),
      async (which, before, bursts, draws) => {
        const kind = kinds[which] as Kind;
        const { memory, create, copy, count, answerAll, late, settled, end } = fixture();
        for (let n = 0; n < before; n += 1) memory.create(copy(kind, `old-${n}`) as never);
        let drawn = 0;
        const next = (): number => draws[drawn++ % draws.length] ?? 0;
        const asked: Promise<boolean>[] = [];
        for (const [b, size] of bursts.entries()) {
          for (let n = 0; n < size; n += 1) asked.push(create(kind, `new-${b}-${n}`));
          await settled();
          // Some lists of this burst are still on their way when the next one comes.
          for (let n = next() % (size + 1); n > 0; n -= 1) late.splice(next() % late.length, 1)[0]?.();
        }
        await answerAll(next);
        const allowed = (await Promise.all(asked)).filter(Boolean).length;
        expect(count(kind)).toBe(Math.min(most, before + asked.length));
        expect(allowed).toBe(count(kind) - before);
        end();
      },
    ),
    { numRuns: 30 },
  );
});

test('kinds do not count for each other, a dry run takes no place, and one that exists takes none again', async () => {
  const { memory, ask, create, copy, answerAll, end } = fixture();
  const [slices, maps] = kinds;
  for (let n = 0; n < most - 1; n += 1) memory.create(copy(slices, `old-${n}`) as never);
  const all = Promise.all([
    ...[ask(slices, 'dry', true), create(slices, 'last'), create(maps, 'map')],
    ...[create(slices, 'old-0'), create(slices, 'more')],
  ]);
  await answerAll(() => 0);
  expect(await all).toEqual([true, true, true, true, false]);
  end();
});

test('a place that was let in and never taken is free again after ten seconds', async () => {
  const { clock, memory, ask, copy, answerAll, end } = fixture();
  const [slices] = kinds;
  for (let n = 0; n < most - 1; n += 1) memory.create(copy(slices, `old-${n}`) as never);
  const asked = async (name: string): Promise<boolean> => {
    const answer = ask(slices, name);
    await answerAll(() => 0);
    return answer;
  };
  expect(await asked('refused-later')).toBe(true);
  expect(await asked('next')).toBe(false);
  clock.advance(10_001);
  expect(await asked('next')).toBe(true);
  end();
});
