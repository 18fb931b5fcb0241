/** That a handler with a defect which reads another tenant is refused, by the rights that its role has: planted in the use case, found at the table. */
import { expect, test } from 'vitest';
import { createMemoryStore } from '#control/adapters/memory/memory-store.ts';
import { ManualClock } from '#shared/ports/clock.ts';
import { createTableGuard, MissingRight } from './table-guard.ts';

const store = createMemoryStore({ clock: new ManualClock() });

test('a function that serves acme reads acme and no other tenant, and no kind that it has no use for', async () => {
  const guard = createTableGuard();
  const listing = (partition: string) =>
    guard.asFunctionOf('GET /v1/audit', () => guard.guarded(store, 'acme').query({ partition, limit: 1 }));
  await expect(listing('t/acme/audit')).resolves.toEqual({ items: [] });
  for (const partition of ['t/bolt/audit', 't/acme-2/audit', 't/acme/webhooks', 'system/tenants'])
    await expect(listing(partition), partition).rejects.toThrow(MissingRight);
});

test('a defect that hides its failure is found all the same', async () => {
  const guard = createTableGuard();
  const hidden = guard.asFunctionOf('GET /v1/audit', async () => {
    await guard
      .guarded(store, 'acme')
      .get('t/bolt', 'tenant')
      .catch(() => undefined);
    return 'answer';
  });
  await expect(hidden).rejects.toThrow('api-audit-list in the session of acme has no right to read t/bolt');
});

test('until the caller is known a function reads what it needs for that', async () => {
  const guard = createTableGuard();
  const asking = (partition: string) =>
    guard.asFunctionOf('GET /v1/audit', () => guard.guarded(store).query({ partition, limit: 1 }));
  await expect(asking('t/bolt/api-keys')).resolves.toEqual({ items: [] });
  await expect(asking('t/bolt/audit')).rejects.toThrow(MissingRight);
});

test.each([
  ['events-peerings', 't/acme/audit'],
  ['events-cluster-left', 't/acme'],
  ['events-webhooks', 't/acme/peerings'],
  ['schedule-sweep', 'system/operator-keys'],
])('%s, which no route has, is held to its rights by its name', async (name, partition) => {
  const guard = createTableGuard();
  const reading = guard.asFunctionOf(name, () => guard.guarded(store).query({ partition, limit: 1 }));
  await expect(reading).rejects.toThrow(`${name} has no right to read ${partition}`);
});

test('a function that notifies agents without the right to fails its test, and one with it does not', async () => {
  const guard = createTableGuard();
  const ringing = (route: string) => guard.asFunctionOf(route, async () => guard.rings());
  await expect(ringing('GET /v1/audit')).rejects.toThrow('api-audit-list has no right to notify agents');
  for (const route of ['$connect', '$default', '$disconnect', 'POST /v1/peerings']) await ringing(route);
});

test('a request to one broker within a request to another is held against the function of each', async () => {
  const [outer, inner] = [createTableGuard(), createTableGuard()];
  const audit = (guard: typeof outer) => () =>
    guard.guarded(store, 'acme').query({ partition: 't/acme/audit', limit: 1 });
  const webhooks = (guard: typeof outer) => () =>
    guard.guarded(store, 'acme').query({ partition: 't/acme/webhooks', limit: 1 });
  const nested = (work: () => Promise<unknown>) =>
    outer.asFunctionOf('GET /v1/audit', () => inner.asFunctionOf('GET /v1/webhooks', work));
  await expect(nested(audit(outer))).resolves.toEqual({ items: [] });
  await expect(nested(webhooks(inner))).resolves.toEqual({ items: [] });
  await expect(nested(webhooks(outer))).rejects.toThrow('api-audit-list');
  await expect(nested(audit(inner))).rejects.toThrow('api-webhooks-list');
});
