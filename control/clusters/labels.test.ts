/** Labels of clusters are the tenant's own: set by operators, kept over reports and over leaving and joining again, found by selectors page by page. */
import { describe, expect, test } from 'vitest';
import { parseSelector } from '#shared/domain/label-selector.ts';
import { adminOf, createBrokerClusters } from '../testing/broker-clusters.ts';

const admin = adminOf('default');

async function started() {
  const fixture = createBrokerClusters();
  for (const name of ['rome', 'milan', 'turin']) await fixture.join(name);
  return { ...fixture, clusters: fixture.control.clusters };
}

describe('labels of a cluster', () => {
  test('are replaced as a whole, with an event and an audit record, and not when nothing changes', async () => {
    const { clusters, control } = await started();
    const first = await clusters.label(admin, 'rome', { labels: { tier: 'gold', zone: 'a' } });
    expect(first.labels).toEqual({ tier: 'gold', zone: 'a' });
    const same = await clusters.label(admin, 'rome', { labels: { zone: 'a', tier: 'gold' } });
    expect(same.version).toBe(first.version);
    const second = await clusters.label(admin, 'rome', { labels: { tier: 'silver' }, ifVersion: first.version });
    expect([second.labels, second.version > first.version]).toEqual([{ tier: 'silver' }, true]);
    const { items } = await control.audit.list(admin, { subject: 'cluster/rome' });
    expect(items.filter(({ action }) => action === 'cluster.label')).toMatchObject([
      { before: { tier: 'gold', zone: 'a' }, after: { tier: 'silver' } },
      { before: {}, after: { tier: 'gold', zone: 'a' } },
    ]);
    const events = (await control.events.list(admin, { subject: 'cluster/rome', limit: 200 })).items;
    expect(events.filter(({ type }) => type === 'cluster.labels-changed')).toHaveLength(2);
  });

  test('are not written over a version that the caller has not read', async () => {
    const { clusters } = await started();
    const { version } = await clusters.get(admin, 'rome');
    await clusters.label(admin, 'rome', { labels: { tier: 'gold' }, ifVersion: version });
    await expect(clusters.label(admin, 'rome', { labels: {}, ifVersion: version })).rejects.toMatchObject({
      code: 'precondition_failed',
    });
    expect((await clusters.get(admin, 'rome')).labels).toEqual({ tier: 'gold' });
  });

  test('stay when the cluster leaves and joins again', async () => {
    const { clusters, join } = await started();
    await clusters.label(admin, 'rome', { labels: { tier: 'gold' } });
    await clusters.remove(admin, 'rome');
    await join('rome');
    expect(await clusters.get(admin, 'rome')).toMatchObject({ state: 'joined', labels: { tier: 'gold' } });
  });

  test.each([
    { labels: { 'a b': 'x' }, code: 'invalid_input' },
    { labels: { tier: 'not a value' }, code: 'invalid_input' },
    { labels: Object.fromEntries(Array.from({ length: 33 }, (_, i) => [`k${i}`, ''])), code: 'invalid_input' },
    { labels: {}, cluster: 'nowhere', code: 'not_found' },
    { labels: {}, by: { ...admin, role: 'viewer' as const }, code: 'forbidden' },
    { labels: {}, by: adminOf('bolt'), code: 'not_found' },
  ])('are refused with $code (%#)', async ({ labels, cluster = 'rome', by = admin, code }) => {
    const { clusters } = await started();
    await expect(clusters.label(by, cluster, { labels })).rejects.toMatchObject({ code });
  });

  test.each([
    // Gold comes before silver: by value where none is asked for.
    { selector: 'tier', found: ['rome', 'milan'] },
    { selector: 'tier=gold', found: ['rome'] },
    { selector: 'tier=gold,zone=b', found: [] },
    { selector: 'zone', found: ['turin'] },
  ])('find clusters by $selector, for every page size', async ({ selector, found }) => {
    const { clusters } = await started();
    await clusters.label(admin, 'rome', { labels: { tier: 'gold' } });
    await clusters.label(admin, 'milan', { labels: { tier: 'silver' } });
    await clusters.label(admin, 'turin', { labels: { zone: 'b' } });
    for (const limit of [1, 2, 50]) {
      const names: string[] = [];
      let cursor: string | undefined;
      do {
        const page = await clusters.list(admin, {
          labels: parseSelector(selector),
          limit,
          ...(cursor ? { cursor } : {}),
        });
        names.push(...page.items.map(({ id }) => id));
        cursor = page.cursor;
      } while (cursor !== undefined);
      expect(names).toEqual(found);
    }
  });
});
