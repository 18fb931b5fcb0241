/** Labels of peerings are the tenant's own: given with the peering or later, kept over all that happens to it, found by selectors, hidden from the other side. */
import { describe, expect, test } from 'vitest';
import { parseSelector } from '#shared/domain/label-selector.ts';
import type { Caller } from '../../access/caller.ts';
import type { PeeringRecord } from '../../model/peering-records.ts';
import { key } from '../../store/keys.ts';
import { adminOf, createBrokerClusters } from '../../testing/broker-clusters.ts';
import { placesOf, wantedPlaces } from '../../testing/exact-counts.ts';
import { acme, bolt, corp, twoTenants } from '../../testing/two-tenants.ts';

const admin = adminOf('default');
const terms = { consumer: 'rome', provider: 'milan', resources: { cpu: '2' } };

async function started(names: readonly string[] = ['rome', 'milan']) {
  const clusters = createBrokerClusters();
  for (const name of names) await clusters.join(name);
  const { peerings } = clusters.control;
  const labelEvents = async (caller: Caller = admin) =>
    (await clusters.control.events.list(caller, { limit: 200 })).items.filter(
      ({ type }) => type === 'peering.labels-changed',
    );
  return { ...clusters, peerings, labelEvents };
}

describe('labels of a peering', () => {
  test('are given when it is asked for, in one transaction with it, and told by an event of their own', async () => {
    const { peerings, labelEvents, control } = await started();
    const { peering } = await peerings.request(admin, { ...terms, labels: { team: 'shop' } });
    expect(peering.labels).toEqual({ team: 'shop' });
    expect(await labelEvents()).toMatchObject([
      { subject: `peering/${peering.id}`, data: { consumer: 'rome', provider: 'milan', labels: { team: 'shop' } } },
    ]);
    const { items } = await control.audit.list(admin, { subject: `peering/${peering.id}` });
    expect(items.find(({ action }) => action === 'peering.request')).toMatchObject({
      after: { labels: { team: 'shop' } },
    });
  });

  test('stay when it is asked for again without any, and are replaced when it is asked for with others', async () => {
    const { peerings, labelEvents } = await started();
    await peerings.request(admin, { ...terms, labels: { team: 'shop' } });
    const more = await peerings.request(admin, { ...terms, resources: { cpu: '4' } });
    expect(more.peering).toMatchObject({ resources: { cpu: '4' }, labels: { team: 'shop' } });
    const other = await peerings.request(admin, { ...terms, resources: { cpu: '4' }, labels: { stage: 'prod' } });
    expect(other).toMatchObject({ created: false, peering: { labels: { stage: 'prod' } } });
    expect(await labelEvents()).toHaveLength(2);
  });

  test('are replaced as a whole, with an event and an audit record, and not when nothing changes', async () => {
    const { peerings, control, labelEvents } = await started();
    const { id } = (await peerings.request(admin, terms)).peering;
    const first = await peerings.label(admin, id, { labels: { team: 'shop', stage: 'prod' } });
    const same = await peerings.label(admin, id, { labels: { stage: 'prod', team: 'shop' } });
    expect(same.version).toBe(first.version);
    const second = await peerings.label(admin, id, { labels: { team: 'bank' }, ifVersion: first.version });
    expect([second.labels, second.version > first.version]).toEqual([{ team: 'bank' }, true]);
    const { items } = await control.audit.list(admin, { subject: `peering/${id}` });
    expect(items.filter(({ action }) => action === 'peering.label')).toMatchObject([
      { before: { team: 'shop', stage: 'prod' }, after: { team: 'bank' } },
      { before: {}, after: { team: 'shop', stage: 'prod' } },
    ]);
    expect(await labelEvents()).toHaveLength(2);
  });

  test('are not written over a version that the caller has not read', async () => {
    const { peerings } = await started();
    const { id, version } = (await peerings.request(admin, terms)).peering;
    await peerings.label(admin, id, { labels: { team: 'shop' }, ifVersion: version });
    await expect(peerings.label(admin, id, { labels: {}, ifVersion: version })).rejects.toMatchObject({
      code: 'precondition_failed',
    });
    expect((await peerings.get(admin, id)).labels).toEqual({ team: 'shop' });
  });

  test('stay from Proposed to Gone, change nothing at the clusters, and go with the record a day later', async () => {
    const { peerings, until, rings, clock, store } = await started();
    const { id } = (await peerings.request(admin, { ...terms, labels: { team: 'shop' } })).peering;
    await until(async () => (await peerings.get(admin, id)).phase === 'Ready');
    const rung = rings.length;
    expect((await peerings.label(admin, id, { labels: { team: 'bank' } })).phase).toBe('Ready');
    expect(rings.length).toBe(rung);
    await peerings.unpeer(admin, id);
    await until(async () => (await peerings.get(admin, id)).phase === 'Gone');
    expect((await peerings.get(admin, id)).labels).toEqual({ team: 'bank' });
    await until(async () => (await store.get(...at(id)))?.expiresAt !== undefined);
    const ends = (await store.get(...at(id)))?.expiresAt;
    await peerings.label(admin, id, { labels: { team: 'old' } });
    expect((await store.get(...at(id)))?.expiresAt).toBe(ends);
    clock.advance(25 * 3_600_000);
    await expect(peerings.get(admin, id)).rejects.toMatchObject({ code: 'not_found' });
  });

  test('of a record from before there were any are none, and can be given', async () => {
    const { peerings, store } = await started();
    const { id } = (await peerings.request(admin, terms)).peering;
    expect((await store.get<PeeringRecord>(...at(id)))?.value.spec).not.toHaveProperty('labels');
    expect((await peerings.get(admin, id)).labels).toEqual({});
    expect((await peerings.list(admin, { labels: parseSelector('team') })).items).toEqual([]);
    expect((await peerings.label(admin, id, { labels: { team: 'shop' } })).labels).toEqual({ team: 'shop' });
  });

  test.each([
    { labels: { 'a b': 'x' }, code: 'invalid_input' },
    { labels: { team: 'not a value' }, code: 'invalid_input' },
    { labels: Object.fromEntries(Array.from({ length: 33 }, (_, i) => [`k${i}`, ''])), code: 'invalid_input' },
    { labels: {}, peering: 'pe_none', code: 'not_found' },
    { labels: {}, by: { ...admin, role: 'viewer' as const }, code: 'forbidden' },
    { labels: {}, by: adminOf('bolt'), code: 'not_found' },
  ])('are refused with $code (%#)', async ({ labels, peering, by = admin, code }) => {
    const { peerings } = await started();
    const { id } = (await peerings.request(admin, terms)).peering;
    await expect(peerings.label(by, peering ?? id, { labels })).rejects.toMatchObject({ code });
  });

  test('that are none refuse the whole request', async () => {
    const { peerings } = await started();
    await expect(peerings.request(admin, { ...terms, labels: { team: 'a b' } })).rejects.toMatchObject({
      code: 'invalid_input',
    });
    expect((await peerings.list(admin)).items).toEqual([]);
  });

  test.each([
    { selector: 'team', found: ['genoa', 'milan'] },
    { selector: 'team=shop', found: ['milan'] },
    { selector: 'team=shop,stage=prod', found: [] },
    { selector: 'stage', found: ['turin'] },
  ])('find peerings by $selector, for every page size and cluster filter', async (sought) => {
    const { peerings } = await started(['rome', 'milan', 'genoa', 'turin']);
    const given = { milan: { team: 'shop' }, genoa: { team: 'bank' }, turin: { stage: 'prod' } };
    for (const [provider, labels] of Object.entries(given))
      await peerings.request(admin, { ...terms, provider, labels });
    for (const limit of [1, 2, 50])
      for (const of of [{}, { cluster: 'rome' }]) {
        const names: string[] = [];
        let cursor: string | undefined;
        do {
          const filter = { ...of, labels: parseSelector(sought.selector), limit, ...(cursor ? { cursor } : {}) };
          const page = await peerings.list(admin, filter);
          names.push(...page.items.map(({ provider }) => provider));
          cursor = page.cursor;
        } while (cursor !== undefined);
        expect(names.sort()).toEqual(sought.found);
      }
  });
});

const at = (id: string) => {
  const { pk, sk } = key.peering('default', id);
  return [pk, sk] as const;
};

test('the labels that two tenants give to one peering are each one’s own through all its phases', async () => {
  const { control, invited, untilPhase, store } = await twoTenants();
  const { id } = await invited();
  const { peerings } = control;
  const own = async () => [(await peerings.get(acme, id)).labels, (await peerings.get(bolt, id)).labels];
  expect(await own()).toEqual([{}, {}]);
  await peerings.label(acme, id, { labels: { words: 'ACME-INNER' } });
  const { version } = await peerings.get(bolt, id);
  await peerings.label(bolt, id, { labels: { words: 'BOLT-INNER' }, ifVersion: version });
  const both = [{ words: 'ACME-INNER' }, { words: 'BOLT-INNER' }];
  expect(await own()).toEqual(both);
  await untilPhase(id, 'Ready');
  expect(await own()).toEqual(both);
  const requested = { consumer: 'rome', provider: 'milan', resources: { cpu: '1' }, labels: { words: 'ACME-INNER-2' } };
  expect((await peerings.request(acme, requested)).peering).toMatchObject({
    resources: { cpu: '1' },
    labels: requested.labels,
  });
  expect((await peerings.get(bolt, id)).resources).toEqual({ cpu: '1' });
  await peerings.unpeer(bolt, id);
  await untilPhase(id, 'Gone');
  expect(await own()).toEqual([requested.labels, { words: 'BOLT-INNER' }]);

  const heardBy = async (caller: Caller) =>
    JSON.stringify([
      await peerings.list(caller, { includeGone: true }),
      await control.events.list(caller, { limit: 200 }),
      await control.audit.list(caller, { limit: 200 }),
      await control.clusters.list(caller, { includeLeft: true }),
      await control.tenants.export.page(caller),
    ]);
  expect(await heardBy(acme)).toContain('ACME-INNER');
  expect(await heardBy(acme)).not.toContain('BOLT-INNER');
  expect(await heardBy(bolt)).toContain('BOLT-INNER');
  expect(await heardBy(bolt)).not.toContain('ACME-INNER');
  const shared = key.sharedPeering('bolt', 'acme', id);
  expect(JSON.stringify(await store.get(shared.pk, shared.sk))).not.toContain('INNER');
  const foundBy = (caller: Caller, text: string) =>
    peerings.list(caller, { includeGone: true, labels: parseSelector(text) }).then(({ items }) => items.length);
  expect(await foundBy(acme, 'words=BOLT-INNER')).toBe(0);
  expect(await foundBy(bolt, 'words=BOLT-INNER')).toBe(1);
  await expect(peerings.label(corp, id, { labels: {} })).rejects.toMatchObject({ code: 'not_found' });
});

test('as many labels as there may be, at both tenants, do not keep a peering from ending, and end with it', async () => {
  const { control, invited, untilPhase, store, clock } = await twoTenants();
  const { id } = await invited();
  const labelsOf = (value: string) =>
    Object.fromEntries(Array.from({ length: 32 }, (_, i) => [`label-${i}`, `${value}-${i}`]));
  for (const value of ['a', 'b'])
    for (const caller of [acme, bolt]) await control.peerings.label(caller, id, { labels: labelsOf(value) });
  await untilPhase(id, 'Ready');
  await control.peerings.unpeer(acme, id);
  await untilPhase(id, 'Gone');
  const ended = { includeGone: true, labels: parseSelector('label-7=b-7') };
  for (const caller of [acme, bolt]) {
    expect((await control.peerings.list(caller, ended)).items).toHaveLength(1);
    expect(await placesOf(store, caller.tenant)).toEqual(await wantedPlaces(store, caller.tenant));
  }
  clock.advance(25 * 3_600_000);
  for (const { tenant } of [acme, bolt])
    expect((await placesOf(store, tenant)).filter((place) => place.startsWith(`t/${tenant}/labels`))).toEqual([]);
});
