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

  test('a page of the events of one tenant waits for one page of each other tenant, however many pages and keys those have asked for', async () => {
    const clock = new ManualClock();
    const store = openSqliteStore({ path: newPath(), clock });
    const event = (stream: string) => ({ id: 'e', stream, type: 't', subject: 'x', at: clock.now(), data: {} });
    await store.transact([], [event('busy'), event('calm')]);
    const ended: string[] = [];
    const note = (name: string) => () => void ended.push(name);
    const busy = [1, 2, 3].map((n) => store.outbox(undefined, 50, 'busy').then(note(`busy ${n}`)));
    const many = Array.from({ length: 100 }, (_, n) => ({ pk: 'busy', sk: `${n}` }));
    const keys = store.getMany({ keys: many }).then(note('many keys'));
    const calm = store.outbox(undefined, 50, 'calm').then(note('calm'));
    await Promise.all([...busy, keys, calm]);
    expect(ended).toEqual(['busy 1', 'busy 2', 'calm', 'busy 3', 'many keys']);
    await store.close();
  });

  test('takes transactions that are asked for together with one commit, and a refused one fails alone', async () => {
    const statements: string[] = [];
    const store = openSqliteStore({
      path: newPath(),
      clock: new ManualClock(),
      open: (path) => {
        const db = openDatabase(path);
        return {
          ...db,
          prepare: (sql) => db.prepare(sql),
          close: () => db.close(),
          exec: (sql) => {
            statements.push(sql);
            db.exec(sql);
          },
        };
      },
    });
    const put = (sk: string) => store.transact([{ op: 'put', pk: 'p', sk, value: sk }]);
    const aborted = store.transact([{ op: 'put', pk: 'p', sk: 'z', value: 1 }], [], AbortSignal.abort(new Error('no')));
    const outcomes = await Promise.allSettled([put('a'), put('b'), put('a'), aborted, put('c')]);
    expect(outcomes.map(({ status }) => status)).toEqual([
      'fulfilled',
      'fulfilled',
      'rejected',
      'rejected',
      'fulfilled',
    ]);
    expect(outcomes[2]).toMatchObject({ reason: { code: 'version_conflict' } });
    expect(statements.filter((sql) => sql === 'COMMIT')).toHaveLength(1);
    expect((await store.query({ partition: 'p', limit: 9 })).items.map(({ sk }) => sk)).toEqual(['a', 'b', 'c']);
    await store.close();
  });

  test('on a full disk says so, reads on, and goes on when there is room', async () => {
    let opened: Database | undefined;
    const store = openSqliteStore({
      path: newPath(),
      clock: new ManualClock(),
      open: (path) => {
        opened = openDatabase(path);
        return opened;
      },
    });
    const put = (sk: string) => store.transact([{ op: 'put', pk: 'p', sk, value: 'x'.repeat(100_000) }]);
    await put('before');
    const pages = opened?.prepare('PRAGMA page_count').get() as { readonly page_count: number } | undefined;
    opened?.exec(`PRAGMA max_page_count = ${pages?.page_count}`);
    for (const sk of ['a', 'b']) await expect(put(sk)).rejects.toMatchObject({ code: 'storage_full' });
    expect(await store.get('p', 'before')).toBeDefined();
    expect(await store.get('p', 'a')).toBeUndefined();
    opened?.exec('PRAGMA max_page_count = 100000');
    await put('a');
    await store.close();
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
