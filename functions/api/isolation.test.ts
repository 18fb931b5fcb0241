import { expect, test } from 'vitest';
import { runIsolation } from '#functions/testing/isolation.ts';
import { acrossByDesign, notPerformed } from '#functions/testing/isolation-design.ts';
import { operations } from '#functions/testing/operations.ts';
import { casesOf } from '#test/harness/cases.ts';

test.each(casesOf([1, 2, 3, 4], [1]))(
  'four tenants find nothing of each other in 5,000 operations of every kind (seed %i)',
  async (seed) => {
    const { byOperation, byStatus, twins, told } = await runIsolation({ seed, count: 5_000 });
    const neverTried = operations.filter(({ id }) => !(id in notPerformed) && byOperation[id] === undefined);
    expect(neverTried.map(({ id }) => id)).toEqual([]);
    expect(twins).toBeGreaterThan(500);
    expect(told).toBeGreaterThan(100);
    expect(byStatus['200']).toBeGreaterThan(1_000);
  },
  120_000,
);

test('each deliberate flow between tenants exists and has a reason', () => {
  const ids = operations.map(({ id }) => id);
  for (const [id, reason] of Object.entries({ ...acrossByDesign, ...notPerformed })) {
    expect(ids).toContain(id);
    expect(reason).not.toBe('');
  }
});
