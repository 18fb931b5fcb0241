/** Data that a broker of commit 30013a1 wrote, in the hands of this one. */
import { mkdtemp, readdir, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { openDatabase } from '#control/adapters/sqlite/driver.ts';
import { currentFormat, formatOf } from '#control/adapters/sqlite/formats.ts';
import { openSqliteStore } from '#control/adapters/sqlite/sqlite-store.ts';
import { recorded, writeFormat1 } from '#control/adapters/sqlite/testing/format-1.ts';
import { key } from '#control/store/keys.ts';
import { dueItems } from '#control/testing/due-items.ts';
import { countedItems, countersOf, placesOf, wantedPlaces } from '#control/testing/exact-counts.ts';
import type { Clock } from '#shared/ports/clock.ts';
import { ManualClock } from '#shared/ports/clock.ts';
import { silentLog } from '#shared/ports/log.ts';
import { systemClock } from '#shared/ports/system-clock.ts';
import { restore } from './backup.ts';
import { type Broker, startBroker } from './broker.ts';
import { makePrivateDirectory } from './private-files.ts';
import { send } from './scripted-agent.ts';
import { upgradeStopped } from './upgrade.ts';

let dir = '';
beforeAll(async () => {
  dir = await mkdtemp(path.join(tmpdir(), 'isthmus-upgrade-'));
});
afterAll(() => rm(dir, { recursive: true, force: true }));

/** When the recorded broker was stopped. */
const stoppedAt = Math.max(...recorded.outbox.map(([, , at]) => Number(at)));

async function oldData(name: string): Promise<{ readonly data: string; readonly file: string }> {
  const data = path.join(dir, name);
  await makePrivateDirectory(data);
  const file = path.join(data, 'broker.db');
  writeFormat1(file);
  return { data, file };
}

const formatIn = (file: string): number => {
  const db = openDatabase(file);
  const format = formatOf(db);
  db.close();
  return format;
};

describe('data of format 1', () => {
  test('is refused by a store that does not know it, with the command that upgrades it', async () => {
    const { file } = await oldData('refused');
    expect(() => openSqliteStore({ path: file, clock: new ManualClock() })).toThrow(
      /an older program \(format 1.*isthmus broker upgrade/,
    );
  });

  test('keeps everything that was planned, at its time', async () => {
    const { data, file } = await oldData('planned');
    expect(await upgradeStopped(data, stoppedAt)).toMatchObject({ from: 1, to: currentFormat });
    const store = openSqliteStore({ path: file, clock: new ManualClock(stoppedAt) });
    const planned = recorded.item.filter(([pk]) => /^t\/[^/]+\/(due|webhook-due)$/.test(String(pk)));
    const found = [...(await dueItems(store)), ...(await dueItems(store, 'deliveries'))];
    expect(found).toHaveLength(planned.length);
    expect(planned.length).toBeGreaterThan(10);
    for (const [pk = '', sk = '', value] of planned.map((row) => row.map(String))) {
      const tenant = pk.split('/')[1] ?? '';
      const [a = '', b = '', event = ''] = sk.split('/');
      const at = pk.endsWith('webhook-due')
        ? key.receiverDue(tenant, a, Number(b), event)
        : key.due(tenant, Number(a), b);
      const item = await store.get(at.pk, at.sk);
      expect(item?.value).toMatchObject(JSON.parse(value ?? '') as object);
    }
    expect((await store.query({ partition: 'system/deleting', limit: 10 })).items.map(({ sk }) => sk)).toEqual([
      'gone',
    ]);
    await store.close();
  });

  test('has counters of exactly the clusters and peerings that live, and finds them and its audit records by what people look for', async () => {
    const { data, file } = await oldData('counted');
    const db = openDatabase(file);
    for (const [place, labels] of Object.entries({ labels: { tier: 'gold' }, 'spec.labels': { team: 'shop' } })) {
      const pk = place === 'labels' ? 't/default/clusters' : 't/default/peerings';
      db.prepare(`UPDATE item SET value = json_set(value, '$.${place}', json(?)) WHERE pk = ?`).run(
        JSON.stringify(labels),
        pk,
      );
    }
    db.close();
    await upgradeStopped(data, stoppedAt);
    const store = openSqliteStore({ path: file, clock: new ManualClock(stoppedAt) });
    for (const tenant of ['acme', 'default', 'gone'])
      expect([tenant, await countersOf(store, tenant)]).toEqual([tenant, await countedItems(store, tenant)]);
    for (const tenant of ['acme', 'default', 'gone'])
      expect(await placesOf(store, tenant)).toEqual(await wantedPlaces(store, tenant));
    expect((await placesOf(store, 'default')).filter((place) => place.startsWith('t/default/labels '))).toHaveLength(5);
    expect(await countersOf(store, 'default')).toEqual({ clusters: 2, peerings: 2 });
    await store.close();
  });

  test('keeps when each cluster was heard, and its revision, where a list of clusters reads them', async () => {
    const { data, file } = await oldData('heard');
    await upgradeStopped(data, stoppedAt);
    const store = openSqliteStore({ path: file, clock: new ManualClock(stoppedAt) });
    const rows = recorded.item.map((row) => row.map(String)).filter(([pk = '']) => /^t\/[^/]+\/cluster\//.test(pk));
    const moved = rows.filter(([, sk = '']) => sk === 'seen' || sk === 'revision');
    expect(moved.length).toBeGreaterThan(4);
    for (const [pk = '', sk = '', value = '', version] of moved) {
      const [, tenant = '', , cluster = ''] = pk.split('/');
      const at = sk === 'seen' ? key.seen(tenant, cluster) : key.revision(tenant, cluster);
      expect(await store.get(at.pk, at.sk)).toMatchObject({ value: JSON.parse(value), version: Number(version) });
      expect(await store.get(pk, sk)).toBeUndefined();
    }
    await store.close();
  });

  test('keeps the directory', async () => {
    const { data, file } = await oldData('directory');
    await upgradeStopped(data, stoppedAt);
    const store = openSqliteStore({ path: file, clock: new ManualClock(stoppedAt) });
    const { pk, sk } = key.published('acme', 'rome');
    expect(await store.get(pk, sk)).toMatchObject({
      value: { tenant: 'acme', cluster: 'rome', region: 'eu' },
      version: 1,
    });
    expect((await store.query({ partition: 'system/directory', limit: 1 })).items).toEqual([]);
    await store.close();
  });

  test('keeps what belongs to a cluster and to partners that are called as a partition of it is', async () => {
    const { data, file } = await oldData('namesakes');
    const namesakes = ['t/acme/cluster/due', 't/acme/with/webhook-due', 't/acme/open-requests/due'];
    const all = (): unknown[] => {
      const db = openDatabase(file);
      const rows = namesakes.flatMap((pk) => db.prepare('SELECT * FROM item WHERE pk = ?').all(pk));
      db.close();
      return rows;
    };
    const db = openDatabase(file);
    for (const pk of namesakes)
      db.prepare(`INSERT INTO item (pk, sk, value, version) VALUES (?, 'observed/pe-1', '{"a":1}', 7)`).run(pk);
    db.close();
    const before = all();
    expect(before).toHaveLength(namesakes.length);
    await upgradeStopped(data, stoppedAt);
    expect(all()).toEqual(before);
  });

  test('is upgraded once, and what it was before is copied first', async () => {
    const { data, file } = await oldData('once');
    const { copy = '' } = await upgradeStopped(data, stoppedAt);
    expect([formatIn(file), formatIn(path.join(copy, 'broker.db'))]).toEqual([currentFormat, 1]);
    expect(await upgradeStopped(data, stoppedAt)).toEqual({ from: currentFormat, to: currentFormat });
    expect((await readdir(data)).filter((name) => name.startsWith('before-'))).toHaveLength(1);
    const back = path.join(dir, 'back');
    await restore(copy, back);
    expect(formatIn(path.join(back, 'broker.db'))).toBe(1);
  });

  test('stays as it is when the upgrade fails half-way', async () => {
    const { data, file } = await oldData('failing');
    const db = openDatabase(file);
    // What the last step writes is there already.
    db.exec("INSERT INTO item (pk, sk, value, version) VALUES ('system/deleting', 'gone', '{}', 1)");
    db.close();
    for (let start = 0; start < 3; start += 1)
      await expect(upgradeStopped(data, stoppedAt + start * 1_000)).rejects.toThrow();
    expect((await readdir(data)).filter((name) => name.startsWith('before-'))).toEqual([]);
    const after = openDatabase(file);
    const { n } = after.prepare("SELECT count(*) AS n FROM item WHERE pk LIKE 't/%/due'").get() as {
      readonly n: number;
    };
    after.close();
    expect([formatIn(file), n]).toEqual([1, recorded.item.filter(([pk]) => /\/due$/.test(String(pk))).length]);
  });

  test('is served: keys are accepted, and what had come due while nothing ran is done', async () => {
    const { data } = await oldData('served');
    /** Behind every planned look, and before any webhook gives up. */
    const offset = stoppedAt + 3_600_000 - Date.now();
    const clock: Clock = { now: () => Date.now() + offset, sleep: systemClock.sleep };
    const options = { dataDir: data, listen: '127.0.0.1:0', log: silentLog, version: '0', clock, newAdminKey: true };
    const broker: Broker = await startBroker(options);
    const get = (at: string) =>
      send({
        method: 'GET',
        url: broker.url + at,
        ca: broker.caPem,
        headers: { authorization: `Bearer ${broker.adminKey}` },
      });
    const { body: clusters } = await get('/v1/clusters');
    expect(clusters.items.map(({ name }: { name: string }) => name).sort()).toEqual(['bonn', 'ulm']);
    const offline = async (): Promise<unknown> => {
      const { body } = await get('/v1/peerings');
      return body.items[0].conditions.find(({ type }: { type: string }) => type === 'ConsumerOnline').status;
    };
    await expect.poll(offline, { timeout: 15_000 }).toBe('False');
    // The tenant whose deletion had begun is gone at last, its peering having ended.
    const gone = () => broker.control.tenants.deletion.sweep();
    await expect.poll(gone, { timeout: 15_000 }).toBe(0);
    await broker.close();
  });
});
