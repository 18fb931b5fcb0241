/** Quota decisions against an oracle that counts in plain integers. */
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import type { Quota } from '#shared/schema/liqo/quota.ts';
import type { ShadowPod } from '#shared/schema/liqo/shadow-pod.ts';
import { usageOf, validateQuota } from './fits.ts';

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
const ofPod = (requests: Record<string, string>) => ({
  containers: [{ name: 'a' }],
  resources: { requests, limits: { cpu: '64', memory: '256Gi' } },
});
const evenBut = (resources: object) => {
  const amounts = { cpu: '100m', memory: '1Mi' };
  return { containers: [{ name: 'a', resources: { requests: amounts, limits: amounts } }], resources };
};
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
    ['Soft', ofPod({ cpu: '100m', memory: '1Mi' }), undefined],
    // A limit of the pod may be any, and older API servers drop both.
    ['Hard', ofPod({ cpu: '100m', memory: '1Mi' }), /container a has no request for cpu/],
    [
      'Hard',
      evenBut({ requests: { cpu: '1' }, limits: { cpu: '2' } }),
      /pod as a whole has a limit other than .* for cpu/,
    ],
    ['Hard', evenBut({ requests: { memory: '1Gi' } }), /pod as a whole has a limit other than .* for memory/],
    ['Soft', evenBut({ requests: { cpu: '1' }, limits: { cpu: '2' } }), undefined],
    ['Hard', evenBut({ limits: { cpu: '1' } }), undefined],
  ] as const)('enforcement %s judges containers', (limitsEnforcement, spec, message) => {
    const verdict = validateQuota(quota({ cpu: '1', memory: '1Gi' }, { limitsEnforcement }), spec, {});
    if (message === undefined) expect(verdict.allowed).toBe(true);
    else expect(verdict).toMatchObject({ allowed: false, message: expect.stringMatching(message) });
  });
});
