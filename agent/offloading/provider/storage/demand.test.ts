import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import type { PersistentVolume, PersistentVolumeClaim } from '#shared/domain/core-kinds.ts';
import type { Quota } from '#shared/schema/liqo/quota.ts';
import { demandOf, fitsStorage, usedBy } from './demand.ts';

const claim = (name: string, gibi: number, more: object = {}): PersistentVolumeClaim =>
  ({
    metadata: { namespace: 'shop-rome', name },
    spec: { storageClassName: 'fast', resources: { requests: { storage: `${gibi}Gi` } } },
    ...more,
  }) as unknown as PersistentVolumeClaim;
const kept = (name: string, gibi: number, claimRef: object = {}): PersistentVolume =>
  ({
    metadata: { name },
    spec: { storageClassName: 'fast', capacity: { storage: `${gibi}Gi` }, claimRef },
  }) as unknown as PersistentVolume;
const quota = (resources: Record<string, string>, cordoned = false): Quota =>
  ({ metadata: { name: 'q' }, spec: { user: 'u', resources, cordoned } }) as Quota;
const gibi = (amount: number): bigint => BigInt(amount) * 2n ** 30n * 1_000_000_000n;

describe('the storage of a consumer', () => {
  test('counts claims by size, number and class, and volumes that are kept after their claims', () => {
    const used = usedBy({ claims: [claim('a', 2)], kept: [kept('pv', 3)] });
    expect(used).toEqual({
      'requests.storage': gibi(5),
      'fast.storageclass.storage.k8s.io/requests.storage': gibi(5),
      persistentvolumeclaims: 2_000_000_000n,
      'fast.storageclass.storage.k8s.io/persistentvolumeclaims': 2_000_000_000n,
    });
  });

  test('counts a kept volume and the claim that has it, or is about to, once', () => {
    const ref = { namespace: 'shop-rome', name: 'a' };
    expect(usedBy({ claims: [claim('a', 2)], kept: [kept('pv', 2, ref)] })['requests.storage']).toBe(gibi(2));
    const others = usedBy({ claims: [], kept: [kept('pv', 2, ref)] }, new Set(['shop-rome/a']));
    expect(others['requests.storage']).toBeUndefined();
  });

  test('counts what was allocated for a growth that failed until that is given back', () => {
    const grown = claim('a', 1, { status: { allocatedResources: { storage: '4Gi' } } });
    expect(demandOf(grown)['requests.storage']).toBe(gibi(4));
  });

  test.each([
    [[quota({ 'requests.storage': '4Gi' })], 'quota_exceeded', /requests.storage: asked 3Gi, used 2Gi of 4Gi/],
    [[quota({ persistentvolumeclaims: '1' })], 'quota_exceeded', /persistentvolumeclaims: asked 1, used 1 of 1/],
    [[], 'quota_missing', /no Quota/],
    [[quota({ 'requests.storage': '40Gi' }, true)], 'quota_cordoned', /cordoned/],
  ])('refuses with used and limit: %#', (quotas, code, message) => {
    const used = usedBy({ claims: [claim('a', 2)], kept: [] });
    const verdict = fitsStorage(quotas, demandOf(claim('b', 3)), used, 'rome');
    expect(verdict).toMatchObject({ allowed: false, code, message: expect.stringMatching(message) });
  });

  test('admits exactly what a count in whole gibibytes says fits', () => {
    const size = fc.integer({ min: 0, max: 9 });
    fc.assert(
      fc.property(
        fc.array(size, { maxLength: 6 }),
        fc.array(size, { maxLength: 3 }),
        size,
        size,
        (claims, left, asked, limit) => {
          const used = usedBy({
            claims: claims.map((one, i) => claim(`c${i}`, one)),
            kept: left.map((one, i) => kept(`pv${i}`, one)),
          });
          const sum = [...claims, ...left].reduce((a, b) => a + b, 0);
          const verdict = fitsStorage(
            [quota({ 'requests.storage': `${limit}Gi` })],
            demandOf(claim('new', asked)),
            used,
            'rome',
          );
          expect(verdict.allowed).toBe(sum + asked <= limit);
        },
      ),
    );
  });
});
