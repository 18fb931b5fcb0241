import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, test } from 'vitest';
import { ManualClock } from '#shared/ports/clock.ts';
import { storeContract } from '../../ports/store.contract.ts';
import { type Database, openDatabase } from './driver.ts';
import { openSqliteStore } from './sqlite-store.ts';

const folder = mkdtempSync(join(tmpdir(), 'isthmus-store-'));
afterAll(() => rmSync(folder, { recursive: true, force: true }));
let files = 0;
const newPath = () => {
  files += 1;
  return join(folder, `${files}.db`);
};

storeContract('SQLite', async (clock) => openSqliteStore({ path: ':memory:', clock }));

describe('a SQLite file', () => {
  test('is there again after closing and opening', async () => {
    const clock = new ManualClock();
    const path = newPath();
    const first = openSqliteStore({ path, clock });
    const event = { id: 'e1', stream: 's', type: 't', subject: 'x', at: clock.now(), data: {} };
    await first.transact([{ op: 'put', pk: 'p', sk: 'a', value: { n: 1 } }], [event]);
    await first.close();
    const second = openSqliteStore({ path, clock });
    expect(await second.get('p', 'a')).toMatchObject({ value: { n: 1 }, version: 1 });
    expect(await second.outbox(undefined, 10)).toMatchObject([event]);
    await second.close();
  });

  test('keeps two processes out of each other’s transactions', async () => {
    const clock = new ManualClock();
    const path = newPath();
    const [one, two] = [openSqliteStore({ path, clock }), openSqliteStore({ path, clock })];
    await one.transact([{ op: 'put', pk: 'p', sk: 'a', value: 1 }]);
    await two.transact([{ op: 'update', pk: 'p', sk: 'a', value: 2, ifVersion: 1 }]);
    await expect(one.transact([{ op: 'update', pk: 'p', sk: 'a', value: 3, ifVersion: 1 }])).rejects.toMatchObject({
      code: 'version_conflict',
    });
    await Promise.all([one.close(), two.close()]);
  });

  test('of a newer program is refused and left alone', () => {
    const path = newPath();
    const db = openDatabase(path);
    db.exec('PRAGMA user_version = 99');
    db.close();
    expect(() => openSqliteStore({ path, clock: new ManualClock() })).toThrow(/newer program \(format 99/);
  });

  test('is written ahead and synchronised at every commit', async () => {
    let opened: Database | undefined;
    const store = openSqliteStore({
      path: newPath(),
      clock: new ManualClock(),
      open: (path) => {
        opened = openDatabase(path);
        return opened;
      },
    });
    expect(opened?.prepare('PRAGMA journal_mode').get()).toEqual({ journal_mode: 'wal' });
    expect(opened?.prepare('PRAGMA synchronous').get()).toEqual({ synchronous: 2 });
    await store.close();
  });
});
