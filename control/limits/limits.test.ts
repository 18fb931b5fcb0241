import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { createMemoryStore } from '#control/adapters/memory/memory-store.ts';
import { codeOf } from '#shared/errors/app-error.ts';
import { ManualClock } from '#shared/ports/clock.ts';
import { silentLog } from '#shared/ports/log.ts';
import type { Store } from '../ports/store.ts';
import { adminOf, createBrokerClusters } from '../testing/broker-clusters.ts';
import { countingIds } from '../testing/counting-ids.ts';
import { hostedLimits } from './limits.ts';
import { createRateLimiter, type RateLimiter } from './rate-limiter.ts';

function processes(count: number, store: (clock: ManualClock) => Store = (clock) => createMemoryStore({ clock })) {
  const clock = new ManualClock(Date.UTC(2026, 0, 1));
  const shared = store(clock);
  const all = Array.from({ length: count }, (_, i) => {
    const ids = countingIds();
    return createRateLimiter({
      store: shared,
      clock,
      ids: { ...ids, next: (prefix) => `${prefix}_${i}` },
      log: silentLog,
    });
  });
  return { clock, store: shared, all };
}

const admits = (limiter: RateLimiter, limit: number, tenant = 'acme'): Promise<boolean> =>
  limiter.admit(tenant, 'requests', limit).then(
    () => true,
    (error: unknown) => {
      if (codeOf(error) !== 'rate_limited') throw error;
      return false;
    },
  );

async function admitted(limiter: RateLimiter, tries: number, limit: number, tenant?: string): Promise<number> {
  let count = 0;
  for (let i = 0; i < tries; i += 1) if (await admits(limiter, limit, tenant)) count += 1;
  return count;
}

/** After these a sixtieth of a minute as a fraction was a little too much, so that one more was counted than there was. */
const waitsThatFillAMinute = [
  57, 3152, 896, 492, 1490, 2931, 839, 2572, 1388, 2183, 2405, 3157, 2171, 386, 1188, 3100, 2160, 3146, 4533, 2970,
  2399, 3481, 2794, 1564, 2137, 4640, 3810, 2419, 3833, 4238, 2851, 3692, 4744, 3939, 2833, 1279, 2774, 4120, 3226,
  3254, 3086, 2230, 981, 3281, 2823, 4555, 2566, 4621, 614, 0, 0, 0, 0, 0, 0,
];

describe('in one process', () => {
  test('exactly the limit passes in a minute', async () => {
    await fc.assert(
      fc.asyncProperty(fc.integer({ min: 0, max: 300 }), async (limit) => {
        const { all } = processes(1);
        expect(await admitted(all[0] as RateLimiter, limit + 50, limit)).toBe(limit);
      }),
      { numRuns: 30 },
    );
  });

  test('in no sixty seconds pass more than twice the limit, and on average no more than it', async () => {
    const gaps = fc.array(fc.integer({ min: 0, max: 2_000 }), { minLength: 200, maxLength: 400 });
    await fc.assert(
      fc.asyncProperty(gaps, async (waits) => {
        const limit = 20;
        const { all, clock } = processes(1);
        const start = clock.now();
        const times: number[] = [];
        for (const wait of waits) {
          clock.advance(wait);
          if (await admits(all[0] as RateLimiter, limit)) times.push(clock.now());
        }
        for (const at of times)
          expect(times.filter((t) => t >= at && t < at + 60_000).length).toBeLessThanOrEqual(2 * limit);
        expect(times.length).toBeLessThanOrEqual(limit * (Math.floor((clock.now() - start) / 60_000) + 1));
      }),
      { numRuns: 40 },
    );
  });

  test('a caller that waits for the stated Retry-After is admitted', async () => {
    const gaps = fc.array(fc.integer({ min: 0, max: 5_000 }), { minLength: 50, maxLength: 150 });
    await fc.assert(
      fc.asyncProperty(gaps, fc.integer({ min: 1, max: 30 }), async (waits, limit) => {
        const { all, clock } = processes(1);
        const [limiter] = all as [RateLimiter];
        for (const wait of waits) {
          clock.advance(wait);
          const refused = await limiter.admit('acme', 'requests', limit).then(
            () => undefined,
            (error: { detail: { retryAfterSeconds: number } }) => error.detail.retryAfterSeconds,
          );
          if (refused === undefined) continue;
          expect(refused).toBeLessThanOrEqual(120);
          clock.advance(refused * 1_000);
          expect(await admits(limiter, limit)).toBe(true);
        }
      }),
      { numRuns: 60, examples: [[waitsThatFillAMinute, 11]] },
    );
  });

  test('a tenant below a fiftieth of its limit costs no read and no write', async () => {
    let calls = 0;
    const counting = (clock: ManualClock): Store => {
      const store = createMemoryStore({ clock });
      return {
        ...store,
        query: (...args) => {
          calls += 1;
          return store.query(...args);
        },
        transact: (...args) => {
          calls += 1;
          return store.transact(...args);
        },
      };
    };
    const { all } = processes(1, counting);
    await admitted(all[0] as RateLimiter, 59, 3_000);
    expect(calls).toBe(0);
    await admitted(all[0] as RateLimiter, 3_000, 3_000);
    expect(calls).toBeLessThanOrEqual(2 * 51);
  });

  test('a tenant that floods takes nothing from another', async () => {
    const { all } = processes(1);
    expect(await admitted(all[0] as RateLimiter, 1_000, 100, 'noisy')).toBe(100);
    expect(await admitted(all[0] as RateLimiter, 100, 100, 'quiet')).toBe(100);
  });

  test('a store in trouble does not become an outage, and the limit of the process holds', async () => {
    const broken = (clock: ManualClock): Store => ({
      ...createMemoryStore({ clock }),
      transact: () => Promise.reject(new Error('throttled')),
    });
    const { all } = processes(1, broken);
    expect(await admitted(all[0] as RateLimiter, 150, 100)).toBe(100);
  });
});

test('across processes no more pass than the limit and a fiftieth of it for each of them', async () => {
  await fc.assert(
    fc.asyncProperty(fc.integer({ min: 2, max: 8 }), fc.integer({ min: 50, max: 500 }), async (count, limit) => {
      const { all } = processes(count);
      let passed = 0;
      for (let i = 0; i < limit * 2; i += 1) if (await admits(all[i % count] as RateLimiter, limit)) passed += 1;
      expect(passed).toBeGreaterThanOrEqual(limit);
      expect(passed).toBeLessThanOrEqual(limit + count * Math.ceil(limit / 50));
    }),
    { numRuns: 30 },
  );
});

describe('what a tenant has', () => {
  const limits = { ...hostedLimits, clusters: 2, peerings: 1 };

  test('is limited in clusters: leaving makes room, joining again needs none', async () => {
    const { join, control } = createBrokerClusters({ deps: { limits } });
    await join('rome');
    await join('milan');
    await expect(join('turin')).rejects.toMatchObject({
      code: 'limit_reached',
      detail: { limit: 2, used: 2, of: 'clusters' },
    });
    await join('milan');
    await control.clusters.remove(adminOf('default'), 'milan');
    await join('turin');
    await join('rome', { tenant: 'other' });
  });

  test('is limited in peerings that have not ended', async () => {
    const clusters = createBrokerClusters({ deps: { limits: { ...limits, clusters: 3 } } });
    for (const name of ['rome', 'milan', 'turin']) await clusters.join(name);
    const { peerings } = clusters.control;
    const admin = adminOf('default');
    const { peering } = await peerings.request(admin, { consumer: 'rome', provider: 'milan', resources: {} });
    await peerings.request(admin, { consumer: 'rome', provider: 'milan', resources: { cpu: '1' } });
    const another = () => peerings.request(admin, { consumer: 'rome', provider: 'turin', resources: {} });
    await expect(another()).rejects.toMatchObject({ code: 'limit_reached', detail: { of: 'peerings' } });
    await peerings.unpeer(admin, peering.id);
    await clusters.until(async () => (await peerings.get(admin, peering.id)).phase === 'Gone');
    expect((await another()).created).toBe(true);
  });

  test('follows the limit that the operator sets', async () => {
    const { join, control } = createBrokerClusters({ deps: { limits } });
    await join('rome');
    await join('milan');
    const operator = { from: 'x', requestId: 'y', principal: 'operator/ok_1' };
    await control.tenants.operators.change(operator, 'default', { limits: { clusters: 3 } });
    await join('turin');
    expect(await control.tenants.own.get(adminOf('default'))).toMatchObject({
      limits: { clusters: 3 },
      usage: { clusters: 3 },
    });
  });
});
