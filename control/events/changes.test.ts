import { expect, test } from 'vitest';
import type { Store } from '../ports/store.ts';
import { adminOf } from '../testing/broker-clusters.ts';
import { createWebhookFixture, hook } from '../webhooks/testing/webhook-fixture.ts';
import { awaited, changesOf } from './changes.ts';

const admin = adminOf('default');

/** Something that can be waited for, and its answer now. */
interface Answer {
  readonly names: readonly string[];
  readonly read: () => Promise<unknown>;
}

/** Compares the answers before and after each commit, one commit at a time. */
function compare() {
  const answers = new Map<string, Answer>();
  const changes: { readonly of: string; readonly named: boolean; readonly events: number }[] = [];
  const readAll = () =>
    Promise.all(
      [...answers].map(async ([of, { read }]) => [of, JSON.stringify(await read().catch(String))] as const),
    ).then((all) => new Map(all));
  let last: Promise<unknown> = Promise.resolve();
  return {
    answers,
    /** Of one kind, those that no name stood for and those that no event told of. */
    of: (kind: string) => {
      const found = changes.filter(({ of }) => of.startsWith(kind));
      return {
        found: found.length,
        unnamed: found.filter(({ named }) => !named),
        withoutEvent: found.filter(({ events }) => events === 0).length,
      };
    },
    wrap: (store: Store): Store => ({
      ...store,
      transact(ops, events = [], signal) {
        const mine = last.then(async () => {
          const before = await readAll();
          await store.transact(ops, events, signal);
          const named = new Set(changesOf(ops, events));
          for (const [of, after] of await readAll())
            if (before.get(of) !== after)
              changes.push({
                of,
                named: answers.get(of)?.names.some((name) => named.has(name)) === true,
                events: events.length,
              });
        });
        last = mine.catch(() => undefined);
        return mine;
      },
    }),
  };
}

test('every commit that changes an answer that can be waited for has its name, also where no event tells of it', async () => {
  const compared = compare();
  const { answers } = compared;
  const w = await createWebhookFixture({ wrap: compared.wrap });
  const { control } = w.world;
  const feed = (subject?: string) => async () =>
    (await control.events.list(admin, { limit: 200, ...(subject !== undefined && { subject }) })).items;
  answers.set('feed', { names: awaited.events('default', undefined), read: feed() });

  for (const id of ['rome', 'milan', 'oslo']) await w.world.join(id);
  const pairs = [
    ['rome', 'milan'],
    ['rome', 'oslo'],
  ] as const;
  const peerings: string[] = [];
  for (const [consumer, provider] of pairs) {
    const { peering } = await control.peerings.request(admin, { consumer, provider, resources: { cpu: '1' } });
    const { id } = peering;
    peerings.push(id);
    answers.set(`peering ${id}`, {
      names: awaited.peering('default', id),
      read: () => control.peerings.get(admin, id),
    });
    answers.set(`subject ${id}`, {
      names: awaited.events('default', `peering/${id}`),
      read: feed(`peering/${id}`),
    });
  }
  const [first = ''] = peerings;
  const phase = async (id: string, wanted: string) => (await control.peerings.get(admin, id)).phase === wanted;
  await w.world.until(() => phase(first, 'Ready'));
  await control.peerings.label(admin, first, { labels: { team: 'shop' } });
  await control.peerings.request(admin, { consumer: 'rome', provider: 'milan', resources: { cpu: '2' } });
  w.clock.advance(3_600_000);
  await control.peerings.sweep();

  const { webhook } = await control.webhooks.create(admin, { url: hook, types: ['*'] });
  const deliveryOf = (id: string) =>
    answers.set(`delivery ${id}`, {
      names: awaited.delivery('default', webhook.id, id),
      read: () => control.webhooks.deliveries.get(admin, webhook.id, id),
    });
  const { id: tried } = await control.webhooks.deliveries.test(admin, webhook.id);
  deliveryOf(tried);
  const happened = await w.happen();
  deliveryOf(happened);
  w.answer(() => ({ status: 503, text: 'busy' }));
  await w.settle();
  w.answer(() => ({ status: 200, text: '' }));
  await w.pass(3_600_000);
  await control.webhooks.deliveries.replay(admin, webhook.id, happened);
  await w.settle();
  await control.webhooks.delete(admin, webhook.id);

  for (const id of peerings) await control.peerings.unpeer(admin, id);
  for (const id of peerings) await w.world.until(() => phase(id, 'Gone'));

  for (const [kind, atLeast] of Object.entries({ feed: 20, peering: 10, subject: 6, delivery: 6 })) {
    const { found, unnamed } = compared.of(kind);
    expect(unnamed, kind).toEqual([]);
    expect(found, kind).toBeGreaterThan(atLeast);
  }
  expect(compared.of('peering').withoutEvent).toBeGreaterThan(0);
  expect(compared.of('delivery').withoutEvent).toBeGreaterThan(0);
});
