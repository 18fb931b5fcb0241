import { describe, expect, test } from 'vitest';
import { ManualClock } from '#shared/ports/clock.ts';
import { silentLog } from '#shared/ports/log.ts';
import type { Repeat } from './access/caller.ts';
import { createLocalBus } from './adapters/local-bus/local-bus.ts';
import { createMemoryStore } from './adapters/memory/memory-store.ts';
import { adminOf, type BrokerClusters, createBrokerClusters } from './testing/broker-clusters.ts';
import { createFaultyStore } from './testing/faulty-store.ts';

const admin = adminOf('default');

async function pages<T>(
  read: (cursor?: string) => Promise<{ readonly items: readonly T[]; readonly cursor?: string }>,
): Promise<T[]> {
  const items: T[] = [];
  let cursor: string | undefined;
  do {
    const page = await read(cursor);
    items.push(...page.items);
    cursor = page.cursor;
  } while (cursor !== undefined);
  return items;
}

describe('lists', () => {
  test('page through everything once, hidden items or not', async () => {
    const clusters = createBrokerClusters();
    for (let i = 0; i < 9; i += 1) await clusters.join(`c${i}`);
    for (const i of [1, 4, 5, 8]) await clusters.control.clusters.remove(admin, `c${i}`);
    const list = (includeLeft: boolean) =>
      pages((cursor) =>
        clusters.control.clusters.list(admin, { limit: 2, includeLeft, ...(cursor === undefined ? {} : { cursor }) }),
      );
    expect((await list(true)).map((c) => c.id)).toEqual(Array.from({ length: 9 }, (_, i) => `c${i}`));
    expect((await list(false)).map((c) => c.id)).toEqual(['c0', 'c2', 'c3', 'c6', 'c7']);
  });

  test.each([
    [{ limit: 0 }, 'invalid_input'],
    [{ limit: 201 }, 'invalid_input'],
    [{ limit: 1.5 }, 'invalid_input'],
    [{ cursor: 'ä' }, 'cursor_unknown'],
    [{ cursor: '***' }, 'cursor_unknown'],
  ] as const)('refuse %j as %s', async (page, code) => {
    const clusters = createBrokerClusters();
    await expect(clusters.control.clusters.list(admin, page)).rejects.toMatchObject({ code });
  });
});

describe('the event feed', () => {
  test('can be followed without missing or repeating anything, and keeps to itself what is internal', async () => {
    const clusters = createBrokerClusters();
    await clusters.join('rome');
    await clusters.join('milan');
    const seen: string[] = [];
    let cursor: string | undefined;
    const follow = async () => {
      const page = await clusters.control.events.list(admin, { limit: 3, ...(cursor === undefined ? {} : { cursor }) });
      cursor = page.cursor;
      seen.push(...page.items.map((event) => event.type));
      return page.items.length;
    };
    while ((await follow()) > 0);
    await clusters.control.peerings.request(admin, { consumer: 'rome', provider: 'milan', resources: {} });
    await clusters.step();
    while ((await follow()) > 0);
    expect(seen.filter((type) => type !== 'cluster.join-token-created')).toEqual([
      'tenant.created',
      'cluster.joined',
      'cluster.joined',
      'peering.requested',
      'peering.phase-changed',
      'peering.phase-changed',
    ]);
    expect(await follow()).toBe(0);
  });
});

describe('an idempotency key', () => {
  const setUp = () => {
    const clusters = createBrokerClusters();
    let runs = 0;
    const work = async () => {
      runs += 1;
      return { status: 201, body: { run: runs } };
    };
    return { ...clusters, once: clusters.control.idempotency.once, work, runs: () => runs };
  };

  test('runs the work once and replays its answer', async () => {
    const { once, work, runs } = setUp();
    expect(await once(admin, { key: 'k', fingerprint: 'f' }, work)).toEqual({
      status: 201,
      body: { run: 1 },
      replayed: false,
    });
    expect(await once(admin, { key: 'k', fingerprint: 'f' }, work)).toEqual({
      status: 201,
      body: { run: 1 },
      replayed: true,
    });
    expect(runs()).toBe(1);
  });

  test('belongs to one caller', async () => {
    const { once, work, runs } = setUp();
    await once(admin, { key: 'k', fingerprint: 'f' }, work);
    await once({ ...admin, principal: 'api-key/other' }, { key: 'k', fingerprint: 'f' }, work);
    await once(adminOf('acme'), { key: 'k', fingerprint: 'f' }, work);
    expect(runs()).toBe(3);
  });

  test('cannot be used for another request', async () => {
    const { once, work } = setUp();
    await once(admin, { key: 'k', fingerprint: 'f' }, work);
    await expect(once(admin, { key: 'k', fingerprint: 'g' }, work)).rejects.toMatchObject({
      code: 'idempotency_mismatch',
    });
  });

  test('forgets work that failed', async () => {
    const { once, work } = setUp();
    await expect(once(admin, { key: 'k', fingerprint: 'f' }, () => Promise.reject(new Error('no')))).rejects.toThrow(
      'no',
    );
    expect((await once(admin, { key: 'k', fingerprint: 'f' }, work)).replayed).toBe(false);
  });

  test('holds off a second run until the first has ended or must have crashed', async () => {
    const { once, work, clock } = setUp();
    let finish: () => void = () => undefined;
    const first = once(admin, { key: 'k', fingerprint: 'f' }, async () => {
      await new Promise<void>((resolve) => {
        finish = resolve;
      });
      return { status: 200, body: {} };
    });
    await expect(once(admin, { key: 'k', fingerprint: 'f' }, work)).rejects.toMatchObject({ code: 'in_progress' });
    clock.advance(60_000);
    expect((await once(admin, { key: 'k', fingerprint: 'f' }, work)).replayed).toBe(false);
    finish();
    await first;
    expect((await once(admin, { key: 'k', fingerprint: 'f' }, work)).body).toEqual({ run: 1 });
  });

  test('keeps a secret only sealed, for a repeat with the same credentials', async () => {
    const { once, store } = setUp();
    const request = { key: 'k', fingerprint: 'f', credentials: 'Bearer a' };
    let runs = 0;
    const work = async ({ earlier, remember }: Repeat) => {
      if (earlier !== undefined) return { status: 201, body: earlier };
      runs += 1;
      const body = { secret: 'hush' };
      await store.transact([remember(body)]);
      return { status: 201, body };
    };
    const first = await once(admin, request, work);
    expect(await once(admin, request, work)).toEqual({ ...first, replayed: true });
    expect(runs).toBe(1);
    await expect(once(admin, { ...request, credentials: 'Bearer b' }, work)).rejects.toMatchObject({
      code: 'already_exists',
    });
    expect(JSON.stringify(await store.query({ partition: 't/default/idempotency', limit: 9 }))).not.toContain('hush');
  });

  test('never keeps a secret that was not part of the change', async () => {
    const { once, store } = setUp();
    const request = { key: 'k', fingerprint: 'f', credentials: 'Bearer a' };
    const work = async () => ({ status: 201, body: { secret: 'hush' } });
    await once(admin, request, work);
    await expect(once(admin, request, work)).rejects.toMatchObject({ code: 'already_exists' });
    expect(JSON.stringify(await store.query({ partition: 't/default/idempotency', limit: 9 }))).not.toContain('hush');
  });
});

describe('a control plane that runs', () => {
  /** Lets everything that is ready run, and time pass once all sleep. */
  async function runUntil(clusters: BrokerClusters, done: () => Promise<boolean>): Promise<void> {
    const stop = new AbortController();
    const running = clusters.control.run(stop.signal);
    for (let i = 0; i < 2_000 && !(await done()); i += 1) {
      for (let j = 0; j < 20; j += 1) await new Promise((resolve) => setImmediate(resolve));
      if (i % 10 === 9) clusters.clock.advance(1_000);
    }
    stop.abort();
    await running;
    expect(await done()).toBe(true);
  }

  test('does by events what a crashed use case left undone', async () => {
    const clock = new ManualClock();
    const faulty = createFaultyStore();
    const store = faulty.wrap(createMemoryStore({ clock }));
    const clusters = createBrokerClusters({
      clock,
      deps: { store, bus: createLocalBus({ store, clock, log: silentLog }) },
    });
    await clusters.join('rome');
    await clusters.join('milan');
    Object.assign(faulty.fault, { in: 2, when: 'before' });
    await expect(
      clusters.control.peerings.request(admin, { consumer: 'rome', provider: 'milan', resources: {} }),
    ).rejects.toThrow('died');
    await runUntil(
      clusters,
      async () => (await clusters.control.peerings.find(admin, 'rome', 'milan')).phase === 'Connecting',
    );
  });

  test('ends an unpeering whose deadlines pass without any event', async () => {
    const clusters = createBrokerClusters();
    const [rome, milan] = [await clusters.join('rome'), await clusters.join('milan')];
    const { peering } = await clusters.control.peerings.request(admin, {
      consumer: 'rome',
      provider: 'milan',
      resources: {},
    });
    await clusters.step();
    for (const cluster of [rome, milan]) cluster.alive = false;
    await clusters.control.peerings.unpeer(admin, peering.id);
    const started = clusters.clock.now();
    await runUntil(clusters, async () => (await clusters.control.peerings.get(admin, peering.id)).phase === 'Gone');
    expect(clusters.clock.now() - started).toBeLessThanOrEqual(60_000);
    expect((await clusters.control.peerings.get(admin, peering.id)).leftBehind).toHaveLength(2);
  });
});
