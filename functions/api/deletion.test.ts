/** The confirmed end of a tenant, by a broker that dies at each of its writes and is asked again. */
import { describe, expect, test } from 'vitest';
import { everyItem } from '#control/store/every-item.ts';
import { key } from '#control/store/keys.ts';
import { holdings, partitionOf } from '#control/tenants/partitions.ts';
import {
  type Asked,
  askedTwice,
  createDyingBroker,
  type DyingBroker,
  type Moment,
  moments,
  post,
} from '#functions/testing/dying-broker.ts';

const pair = { consumer: 'rome', provider: 'milan' };

describe('the deletion of a tenant', () => {
  const asked = async (b: DyingBroker): Promise<Asked> => {
    const { confirmation } = await post(b, 'acme', '/v1/tenant/deletion');
    return { path: '/v1/tenant/deletion/confirm', body: { name: 'acme', confirmation, force: true } };
  };

  async function attempts(peered: boolean, dying?: number, when?: Moment) {
    const b = await createDyingBroker();
    if (peered) await post(b, 'acme', '/v1/peerings', pair);
    const outcome = await askedTwice(b, 'acme', await asked(b), dying, when);
    const { tenants, peerings } = outcome.next.control;
    for (let minute = 0; minute < 10 && (await tenants.deletion.sweep()) > 0; minute += 1) {
      b.clock.advance(60_000);
      await peerings.sweep();
    }
    const left: string[] = [];
    for (const holding of holdings) {
      for (const of of ['rome', 'milan', 'bolt'])
        for await (const { pk, sk } of everyItem(b.store, { partition: partitionOf('acme', holding, of) }))
          left.push(`${pk} ${sk}`);
    }
    const { pk, sk } = key.tombstone('acme');
    const { body } = await outcome.next.call({ method: 'GET', path: '/v1/tenants', key: b.keys.operator });
    const names = (body.items as readonly { name: string }[]).map(({ name }) => name);
    return { ...outcome, left, names, tombstone: (await b.store.get<{ by: string }>(pk, sk))?.value };
  }

  test.each([
    { peered: false, first: 200, again: [200, 401] },
    { peered: true, first: 202, again: [200, 202, 401] },
  ])(
    'comes to its end and leaves its tombstone alone, whenever the broker died meanwhile; with peerings: $peered',
    async ({ peered, first, again }) => {
      const alive = await attempts(peered);
      expect(alive.first.status, alive.first.text).toBe(first);
      expect(alive.writes).toBeGreaterThan(4);
      for (let write = 1; write <= alive.writes; write += 1) {
        for (const when of moments) {
          const { died, left, names, tombstone, again: answer } = await attempts(peered, write, when);
          expect([write, when, died, left, names]).toEqual([write, when, true, [], ['bolt']]);
          expect(tombstone?.by).toMatch(/^api-key\/ak_/);
          // 401: its keys are gone by then.
          expect(again).toContain(answer.status);
        }
      }
    },
  );

  test('that began is asked for again after its confirmation has expired', async () => {
    const b = await createDyingBroker();
    await post(b, 'acme', '/v1/peerings', pair);
    const confirmed = await asked(b);
    const alive = await askedTwice(b, 'acme', confirmed);
    expect([alive.first.status, alive.first.body.state]).toEqual([202, 'deleting']);
    b.clock.advance(15 * 60_000);
    const later = await askedTwice(b, 'acme', confirmed);
    for (const { status, body } of [alive.again, later.first, later.again])
      expect([status, body]).toEqual([202, alive.first.body]);
    const other = await b.fixture.call({ method: 'POST', path: '/v1/keys', key: b.keys.acme, body: {} });
    expect([other.status, other.body.code]).toEqual([409, 'tenant_deleting']);
  });
});
