/** The directory shows what its owners wrote into it, to everybody, and nothing else. */
import { describe, expect, test } from 'vitest';
import type { NewEntry } from '../model/directory-entry.ts';
import { acme, bolt, corp, twoTenants, worldlyFacts } from '../testing/two-tenants.ts';
import { publicFields } from './entry.ts';

const entry: NewEntry = {
  cluster: 'milan',
  region: 'eu-1',
  labels: { tier: 'gold' },
  classes: ['default', 'gpu'],
  capacity: { cpu: '64' },
  description: 'fast disks',
};

test('others see exactly the listed fields', async () => {
  const { control } = await twoTenants();
  await control.directory.publish(bolt, entry);
  const [seen] = (await control.directory.list(acme)).items;
  expect(Object.keys(seen ?? {}).sort()).toEqual([...publicFields].sort());
  expect(seen).toMatchObject({ tenant: 'bolt', ...entry });
  expect(await control.directory.get(acme, 'bolt', 'milan')).toEqual(seen);
  // Nothing of what the cluster's agent reported is in it.
  for (const secret of [worldlyFacts.apiServerUrl, worldlyFacts.kubernetesVersion, 'policies', 'api-key'])
    expect(JSON.stringify(seen)).not.toContain(secret);
});

test('publishing again replaces the description and keeps the time of first publication', async () => {
  const { control, clock } = await twoTenants();
  const first = await control.directory.publish(bolt, entry);
  clock.advance(1_000);
  const second = await control.directory.publish(bolt, { cluster: 'milan' });
  expect([first.created, second.created]).toEqual([true, false]);
  expect(second.entry).toMatchObject({ publishedAt: first.entry.publishedAt, labels: {}, classes: ['default'] });
  expect(second.entry.updatedAt).toBe(first.entry.updatedAt + 1_000);
});

test('only what is one’s own can be published and unpublished', async () => {
  const { control } = await twoTenants();
  await expect(control.directory.publish(acme, entry)).rejects.toMatchObject({ code: 'cluster_unknown' });
  await control.directory.publish(bolt, entry);
  await expect(control.directory.unpublish(acme, 'milan')).rejects.toMatchObject({ code: 'not_found' });
  await expect(control.directory.publish({ ...bolt, role: 'viewer' }, entry)).rejects.toMatchObject({
    code: 'forbidden',
  });
  await control.directory.unpublish(bolt, 'milan');
  await expect(control.directory.unpublish(bolt, 'milan')).rejects.toMatchObject({ code: 'not_found' });
  await expect(control.directory.get(acme, 'bolt', 'milan')).rejects.toMatchObject({ code: 'not_found' });
  await control.directory.publish(bolt, entry);
  expect((await control.directory.list(corp)).items).toHaveLength(1);
});

describe('a list', () => {
  test.each([
    { filter: {}, found: ['bolt/milan', 'bolt/turin'] },
    { filter: { region: 'eu-1' }, found: ['bolt/milan'] },
    { filter: { labels: { tier: 'gold' } }, found: ['bolt/milan'] },
    { filter: { labels: { tier: 'gold', zone: 'b' } }, found: [] },
    { filter: { class: 'gpu' }, found: ['bolt/milan', 'bolt/turin'] },
    { filter: { class: 'huge' }, found: ['bolt/turin'] },
    { filter: { mine: true }, found: [] },
  ])('filtered by $filter', async ({ filter, found }) => {
    const clusters = await twoTenants();
    await clusters.join('turin', { tenant: 'bolt', facts: worldlyFacts });
    await clusters.control.directory.publish(bolt, entry);
    await clusters.control.directory.publish(bolt, { cluster: 'turin', classes: ['*'] });
    const list = async (caller: typeof acme) => {
      const names: string[] = [];
      let cursor: string | undefined;
      do {
        const page = await clusters.control.directory.list(caller, {
          ...filter,
          limit: 1,
          ...(cursor ? { cursor } : {}),
        });
        names.push(...page.items.map(({ tenant, cluster }) => `${tenant}/${cluster}`));
        cursor = page.cursor;
      } while (cursor !== undefined);
      return names;
    };
    expect(await list(acme)).toEqual(found);
    if ('mine' in filter) expect(await list(bolt)).toEqual(['bolt/milan', 'bolt/turin']);
  });
});

test.each([
  { over: { region: 'a b' }, field: 'region' },
  { over: { labels: { '': 'x' } }, field: 'labels.' },
  { over: { labels: { tier: 'a b' } }, field: 'labels.tier' },
  { over: { classes: [] }, field: 'classes' },
  { over: { capacity: { cpu: 'much' } }, field: 'capacity.cpu' },
  { over: { description: 'x'.repeat(501) }, field: 'description' },
])('a wrong $field is refused', async ({ over, field }) => {
  const { control } = await twoTenants();
  await expect(control.directory.publish(bolt, { ...entry, ...over })).rejects.toMatchObject({
    code: 'invalid_input',
    detail: { field },
  });
});
