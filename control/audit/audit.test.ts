import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { ManualClock } from '#shared/ports/clock.ts';
import { createMemoryStore } from '../adapters/memory/memory-store.ts';
import { adminOf } from '../testing/broker-clusters.ts';
import { countingIds } from '../testing/counting-ids.ts';
import { countingReads } from '../testing/counting-store.ts';
import { type AuditRecord, createAudit } from './audit.ts';
import { auditOps } from './record.ts';

const admin = adminOf('acme');

interface Written {
  readonly subject: string;
  readonly principal: string;
  readonly action: string;
}

async function logOf(records: readonly Written[]) {
  const clock = new ManualClock(Date.UTC(2026, 0, 1));
  const counted = countingReads(createMemoryStore({ clock }));
  const deps = { clock, ids: countingIds() };
  const start = clock.now();
  for (const { principal, ...change } of records) {
    await counted.store.transact(auditOps(deps, { ...admin, principal }, change));
    clock.advance(1_000);
  }
  return { ...counted, clock, start, audit: createAudit(counted) };
}

type Log = Awaited<ReturnType<typeof logOf>>;

async function readAll({ audit }: Log, filter: Parameters<typeof audit.list>[1]): Promise<readonly AuditRecord[]> {
  const found: AuditRecord[] = [];
  let cursor: string | undefined;
  do {
    const page = await audit.list(admin, { ...filter, ...(cursor && { cursor }) });
    found.push(...page.items);
    cursor = page.cursor;
  } while (cursor !== undefined);
  return found;
}

describe('an audit log of 5,000 records', () => {
  const many = Array.from({ length: 5_000 }, (_, i) => ({
    subject: i % 500 === 0 ? 'peering/rare' : `peering/${i}`,
    principal: i % 50 === 0 ? 'api-key/seldom' : 'system',
    action: i % 2 === 0 ? 'peering.phase' : 'peering.change',
  }));

  test('is read in proportion to the answer when a subject, a principal or an action is asked for', async () => {
    const log = await logOf(many);
    const ask = (filter: Parameters<typeof log.audit.list>[1], shown: number) =>
      log.of(async () => expect((await log.audit.list(admin, filter)).items).toHaveLength(shown));
    for (const filter of [{ subject: 'peering/rare' }, { principal: 'api-key/seldom' }, { action: 'peering.phase' }])
      expect(await ask({ ...filter, limit: 10 }, 10)).toEqual({ items: 20, requests: 2 });
    expect(await ask({ subject: 'peering/rare', limit: 1 }, 1)).toEqual({ items: 2, requests: 2 });
    expect(await ask({ subject: 'peering/7', limit: 50 }, 1)).toEqual({ items: 2, requests: 2 });
    expect((await ask({ subject: 'none', limit: 50 }, 0)).items).toBe(0);
  });

  test('is read in proportion to the answer when a time is asked for beside it', async () => {
    const log = await logOf(many);
    const within = { since: log.start + 1_000_000, until: log.start + 1_600_000 };
    const reads = await log.of(async () => {
      const found = await log.audit.list(admin, { subject: 'peering/rare', ...within });
      expect(found.items.map(({ at }) => at)).toEqual([log.start + 1_500_000, log.start + 1_000_000]);
    });
    expect(reads).toEqual({ items: 4, requests: 2 });
  });
});

test('any filter, read page by page, finds what a look at every record finds, newest first', async () => {
  const of = <T>(...values: T[]) => fc.constantFrom(...values);
  const record = fc.record({
    subject: of('peering/a', 'peering/ab', 'cluster/ä'),
    principal: of('system', 'member/ada@example.org'),
    action: of('peering.phase', 'peering'),
  });
  const filter = fc.record(
    {
      subject: of('peering/a', 'cluster/ä', 'none'),
      principal: of('system', 'member/ada@example.org'),
      action: of('peering.phase', 'peering'),
      since: fc.nat({ max: 40 }),
      until: fc.nat({ max: 40 }),
    },
    { requiredKeys: [] },
  );
  await fc.assert(
    fc.asyncProperty(
      fc.array(record, { maxLength: 40 }),
      filter,
      fc.integer({ min: 1, max: 9 }),
      async (records, { since, until, ...wanted }, limit) => {
        const log = await logOf(records);
        const from = since === undefined ? undefined : log.start + since * 1_000;
        const to = until === undefined ? undefined : log.start + until * 1_000;
        const found = await readAll(log, {
          ...wanted,
          limit,
          ...(from !== undefined && { since: from }),
          ...(to !== undefined && { until: to }),
        });
        const expected = records
          .map((one, i) => ({ ...one, at: log.start + i * 1_000 }))
          .filter(({ at }) => at >= (from ?? 0) && at < (to ?? Number.POSITIVE_INFINITY))
          .filter((one) => Object.entries(wanted).every(([field, value]) => one[field as keyof Written] === value))
          .reverse();
        expect(found.map(({ at, subject, principal, action }) => ({ subject, principal, action, at }))).toEqual(
          expected,
        );
      },
    ),
    { numRuns: 100 },
  );
});

test('records and what they are found by end together', async () => {
  const log = await logOf([{ subject: 'peering/a', principal: 'system', action: 'peering' }]);
  log.clock.advance(401 * 86_400_000);
  expect((await log.audit.list(admin, { subject: 'peering/a' })).items).toEqual([]);
  expect((await log.store.query({ partition: 't/acme/audit-by', limit: 10 })).items).toEqual([]);
});
