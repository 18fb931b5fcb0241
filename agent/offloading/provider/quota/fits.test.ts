/** Quota decisions against an oracle that counts in plain integers, and whole histories of admissions. */
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { type Amounts, addAmounts, podUsage } from '#shared/domain/pod-resources.ts';
import type { Quota } from '#shared/schema/liqo/quota.ts';
import type { ShadowPod } from '#shared/schema/liqo/shadow-pod.ts';
import { usageOf, validateQuota } from './fits.ts';
import { Reservations } from './reservations.ts';

const quota = (resources: Record<string, string>, more: Partial<Quota['spec']> = {}): Quota => ({
  apiVersion: 'offloading.liqo.io/v1beta1',
  kind: 'Quota',
  metadata: { name: 'q' },
  spec: { user: 'u', resources, ...more },
});
const pod = (cpu?: number, memory?: number) => ({
  containers: [
    {
      name: 'a',
      resources: {
        requests: {
          ...(cpu !== undefined && { cpu: `${cpu}m` }),
          ...(memory !== undefined && { memory: `${memory}Mi` }),
        },
      },
    },
  ],
});
const shadow = (name: string, cpu: number, phase?: 'Running' | 'Succeeded' | 'Failed'): ShadowPod => ({
  apiVersion: 'offloading.liqo.io/v1beta1',
  kind: 'ShadowPod',
  metadata: { namespace: 'ns', name },
  spec: { pod: pod(cpu) },
  ...(phase && { status: { phase } }),
});

describe('quota', () => {
  test('admits exactly what the oracle says fits', () => {
    const amount = fc.integer({ min: 0, max: 20 });
    fc.assert(
      fc.property(
        fc.array(amount, { maxLength: 8 }),
        amount,
        amount,
        fc.integer({ min: 0, max: 100 }),
        (existing, cpu, memory, limit) => {
          const used = usageOf(existing.map((c, i) => shadow(`p${i}`, c)));
          const verdict = validateQuota(quota({ cpu: `${limit}m`, memory: '10Mi' }), pod(cpu, memory), used);
          const taken = existing.reduce((a, b) => a + b, 0);
          expect(verdict.allowed).toBe((cpu === 0 || taken + cpu <= limit) && memory <= 10);
        },
      ),
    );
  });

  test('does not count what has finished', () => {
    const used = usageOf([shadow('a', 900, 'Succeeded'), shadow('b', 900, 'Failed'), shadow('c', 100, 'Running')]);
    expect(validateQuota(quota({ cpu: '1' }), pod(900), used).allowed).toBe(true);
    expect(validateQuota(quota({ cpu: '1' }), pod(901), used).allowed).toBe(false);
  });

  test.each([
    ['None', pod(), undefined],
    ['Soft', pod(100), /container a has no request for memory/],
    ['Soft', pod(100, 1), undefined],
    ['Hard', pod(100, 1), /limit other than its request for cpu/],
  ] as const)('enforcement %s judges containers', (limitsEnforcement, spec, message) => {
    const verdict = validateQuota(quota({ cpu: '1', memory: '1Gi' }, { limitsEnforcement }), spec, {});
    if (message === undefined) expect(verdict.allowed).toBe(true);
    else expect(verdict).toMatchObject({ allowed: false, message: expect.stringMatching(message) });
  });

  test('in any history of admissions, late caches, deletions and losses, what exists never exceeds the quota', () => {
    const limit = 10;
    const step = fc.oneof(
      { weight: 4, arbitrary: fc.record({ do: fc.constant('create' as const), cpu: fc.integer({ min: 1, max: 6 }) }) },
      { weight: 3, arbitrary: fc.record({ do: fc.constant('sync' as const) }) },
      { weight: 2, arbitrary: fc.record({ do: fc.constant('delete' as const), which: fc.nat(9) }) },
      { weight: 1, arbitrary: fc.record({ do: fc.constant('tick' as const), ms: fc.integer({ min: 1, max: 4_000 }) }) },
    );
    fc.assert(
      fc.property(fc.array(step, { maxLength: 60 }), (steps) => {
        const reservations = new Reservations();
        const stored = new Map<string, ShadowPod>();
        let cache = new Map<string, ShadowPod>();
        let now = 0;
        let next = 0;
        /** A watch is at most a second behind: far less than a reservation lives. */
        let synced = 0;
        const sync = (): void => {
          for (const key of stored.keys()) reservations.drop(key);
          for (const key of cache.keys()) if (!stored.has(key)) reservations.drop(key);
          cache = new Map(stored);
          synced = now;
        };
        const used = (): Amounts => {
          const reserved = [...reservations.unseen('u', now)].filter(([key]) => !cache.has(key)).map(([, a]) => a);
          return reserved.reduce(addAmounts, usageOf([...cache.values()]));
        };
        for (const s of steps) {
          if (s.do === 'sync' || now - synced > 1_000) sync();
          if (s.do === 'tick') now += s.ms;
          if (s.do === 'delete') stored.delete([...stored.keys()][s.which] ?? '');
          if (s.do === 'create') {
            const object = shadow(`p${next++}`, s.cpu);
            const key = `ns/${object.metadata.name}`;
            if (!validateQuota(quota({ cpu: `${limit}m` }), object.spec.pod, used()).allowed) continue;
            reservations.add(key, 'u', podUsage(object.spec.pod), now);
            stored.set(key, object);
          }
          expect((usageOf([...stored.values()]).cpu ?? 0n) <= BigInt(limit) * 1_000_000n).toBe(true);
        }
      }),
      { numRuns: 2_000 },
    );
  });
});
