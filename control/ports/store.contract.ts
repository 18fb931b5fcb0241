/** What every adapter of the store port must do. Call it from a test file beside the adapter. */
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { ManualClock } from '#shared/ports/clock.ts';
import { maxOps, maxValueBytes, type NewEvent, type Op, type Store, withPrefix } from './store.ts';

export function storeContract(name: string, open: (clock: ManualClock) => Promise<Store>): void {
  const fresh = async () => {
    const clock = new ManualClock();
    return { clock, store: await open(clock) };
  };
  const put = (sk: string, value: unknown = {}, pk = 'p'): Op => ({ op: 'put', pk, sk, value });
  const event = (id: string, at: number, stream = 'acme'): NewEvent => ({
    id,
    stream,
    type: 'thing.changed',
    subject: `thing/${id}`,
    at,
    data: { n: 1 },
  });

  describe(`Store on ${name}`, () => {
    test('reads back what it wrote, as version 1', async () => {
      const { store } = await fresh();
      await store.transact([put('a', { deep: [1, null, 'ü'], gone: undefined })]);
      expect(await store.get('p', 'a')).toEqual({ pk: 'p', sk: 'a', value: { deep: [1, null, 'ü'] }, version: 1 });
      expect(await store.get('p', 'b')).toBeUndefined();
      expect(await store.get('q', 'a')).toBeUndefined();
    });

    test('hands out copies', async () => {
      const { store } = await fresh();
      const value = { list: [1] };
      await store.transact([put('a', value)]);
      value.list.push(2);
      const read = await store.get<{ list: number[] }>('p', 'a');
      read?.value.list.push(3);
      expect((await store.get('p', 'a'))?.value).toEqual({ list: [1] });
    });

    test('refuses to put what exists and to write by a stale version', async () => {
      const { store } = await fresh();
      await store.transact([put('a', 1)]);
      await expect(store.transact([put('a', 2)])).rejects.toMatchObject({ code: 'version_conflict' });
      await store.transact([{ op: 'update', pk: 'p', sk: 'a', value: 2, ifVersion: 1 }]);
      await expect(store.transact([{ op: 'update', pk: 'p', sk: 'a', value: 3, ifVersion: 1 }])).rejects.toMatchObject({
        code: 'version_conflict',
        detail: { index: 0, expected: 1, found: 2 },
      });
      await expect(store.transact([{ op: 'delete', pk: 'p', sk: 'a', ifVersion: 1 }])).rejects.toMatchObject({
        code: 'version_conflict',
      });
      expect(await store.get('p', 'a')).toMatchObject({ value: 2, version: 2 });
      await store.transact([{ op: 'delete', pk: 'p', sk: 'a', ifVersion: 2 }]);
      expect(await store.get('p', 'a')).toBeUndefined();
    });

    test('writes all of a transaction or nothing, events included', async () => {
      const { store, clock } = await fresh();
      await store.transact([put('a', 1)]);
      await expect(
        store.transact([put('b', 1), { op: 'check', pk: 'p', sk: 'a', ifVersion: 7 }], [event('e1', clock.now())]),
      ).rejects.toMatchObject({ code: 'version_conflict', detail: { index: 1 } });
      expect(await store.get('p', 'b')).toBeUndefined();
      expect(await store.outbox(undefined, 10)).toEqual([]);
    });

    test('checks presence and absence without writing', async () => {
      const { store } = await fresh();
      await store.transact([put('a', 1)]);
      await store.transact([
        { op: 'check', pk: 'p', sk: 'a', ifVersion: 1 },
        { op: 'check', pk: 'p', sk: 'none', ifVersion: 0 },
        put('c', 1),
      ]);
      expect(await store.get('p', 'a')).toMatchObject({ version: 1 });
      await expect(store.transact([{ op: 'check', pk: 'p', sk: 'a', ifVersion: 0 }])).rejects.toMatchObject({
        code: 'version_conflict',
      });
    });

    test('of two writers with the same version one wins', async () => {
      const { store } = await fresh();
      await store.transact([put('a', 0)]);
      const results = await Promise.allSettled(
        [1, 2, 3].map((value) => store.transact([{ op: 'update', pk: 'p', sk: 'a', value, ifVersion: 1 }])),
      );
      expect(results.filter((r) => r.status === 'fulfilled')).toHaveLength(1);
      expect((await store.get('p', 'a'))?.version).toBe(2);
    });

    test('reads many by their keys, in their order, with nothing for what is absent or expired', async () => {
      const { store, clock } = await fresh();
      const names = Array.from({ length: 150 }, (_, i) => `k${i}`);
      for (let i = 0; i < names.length; i += 50)
        await store.transact(names.slice(i, i + 50).map((name) => put(name, { name }, `p${name}`)));
      await store.transact([{ op: 'put', pk: 'p', sk: 'brief', value: 1, expiresAt: clock.now() + 1_000 }]);
      clock.advance(1_000);
      const wanted = [...names, 'none', 'k7'].map((name) => ({ pk: `p${name}`, sk: name }));
      const found = await store.getMany<{ name: string }>({ keys: [...wanted, { pk: 'p', sk: 'brief' }] });
      expect(found.map((item) => item?.value.name)).toEqual([...names, undefined, 'k7', undefined]);
      expect(found[3]).toEqual(await store.get('pk3', 'k3'));
      expect(await store.getMany({ keys: [], eventual: true })).toEqual([]);
      const keys = Array.from({ length: 201 }, (_, i) => ({ pk: 'p', sk: `k${i}` }));
      await expect(store.getMany({ keys })).rejects.toMatchObject({ code: 'too_large' });
    });

    test('sets and clears without a condition, with the transaction or not at all', async () => {
      const { store, clock } = await fresh();
      const set = (value: unknown): Op => ({ op: 'set', pk: 'p', sk: 's', value });
      await store.transact([put('a'), set(1)]);
      await store.transact([put('b'), { ...set(2), expiresAt: clock.now() + 5_000 } as Op]);
      const written = { pk: 'p', sk: 's', value: 2, version: 1, expiresAt: clock.now() + 5_000 };
      expect(await store.get('p', 's')).toEqual(written);
      await expect(store.transact([put('a'), { op: 'clear', pk: 'p', sk: 's' }])).rejects.toMatchObject({
        code: 'version_conflict',
      });
      expect(await store.get('p', 's')).toEqual(written);
      const gone: Op[] = [
        { op: 'clear', pk: 'p', sk: 's' },
        { op: 'clear', pk: 'p', sk: 'never' },
      ];
      await store.transact([put('c'), ...gone]);
      expect(await store.get('p', 's')).toBeUndefined();
      await store.transact([put('d'), set(3)]);
      expect(await store.get('p', 's')).toEqual({ pk: 'p', sk: 's', value: 3, version: 1 });
    });

    test('adds to a counter from nothing, up to its limit, and takes away from above it', async () => {
      const { store } = await fresh();
      const add = (by: number, atMost?: number): Op => ({
        op: 'add',
        pk: 'p',
        sk: 'n',
        by,
        ...(atMost === undefined ? {} : { atMost }),
      });
      await expect(store.transact([add(1, 0), put('a')])).rejects.toMatchObject({ code: 'version_conflict' });
      expect(await store.get('p', 'n')).toBeUndefined();
      await store.transact([add(3, 3), put('a')]);
      expect(await store.get('p', 'n')).toEqual({ pk: 'p', sk: 'n', value: 3, version: 1 });
      await expect(store.transact([put('b'), add(1, 3)])).rejects.toMatchObject({
        code: 'version_conflict',
        detail: { index: 1, atMost: 3 },
      });
      expect(await store.get('p', 'b')).toBeUndefined();
      await store.transact([put('b'), add(2)]);
      await store.transact([put('c'), add(-1, 3)]);
      const { items } = await store.query({ partition: 'p', from: 'n', limit: 1 });
      expect(items).toEqual([{ pk: 'p', sk: 'n', value: 4, version: 3 }]);
      await store.transact([{ op: 'delete', pk: 'p', sk: 'n', ifVersion: 3 }]);
      await store.transact([put('d'), add(1, 1)]);
      expect((await store.get('p', 'n'))?.value).toBe(1);
    });

    test('counts what was written and nothing else, however many write at once, and never beyond the limit', async () => {
      const { store } = await fresh();
      const writers = Array.from({ length: 12 }, (_, i) =>
        store.transact([put(`k${i % 9}`), { op: 'add', pk: 'p', sk: 'n', by: 1, atMost: 5 }]).then(
          () => true,
          () => false,
        ),
      );
      const written = (await Promise.all(writers)).filter(Boolean).length;
      const { items } = await store.query({ partition: 'p', limit: 20, ...withPrefix('k') });
      expect([written, items.length, (await store.get('p', 'n'))?.value]).toEqual([5, 5, 5]);
    });

    test.each([
      {
        what: 'too many operations',
        ops: Array.from({ length: maxOps + 1 }, (_, i) => put(`k${i}`)),
        code: 'too_large',
      },
      { what: 'a value that is too large', ops: [put('a', 'x'.repeat(maxValueBytes))], code: 'too_large' },
      { what: 'one key twice', ops: [put('a'), put('a')], code: 'invalid_input' },
      {
        what: 'what needs a condition beside it',
        ops: [{ op: 'clear', pk: 'p', sk: 'n' } satisfies Op],
        code: 'invalid_input',
      },
      { what: 'an addition alone', ops: [{ op: 'add', pk: 'p', sk: 'n', by: 1 } satisfies Op], code: 'invalid_input' },
      { what: 'an empty key', ops: [put('')], code: 'invalid_input' },
      { what: 'a key with a letter outside ASCII', ops: [put('ä')], code: 'invalid_input' },
      { what: 'a value that is not JSON', ops: [put('a', () => 1)], code: 'invalid_input' },
    ])('refuses $what', async ({ ops, code }) => {
      const { store } = await fresh();
      await expect(store.transact(ops)).rejects.toMatchObject({ code });
      expect((await store.query({ partition: 'p', limit: 10 })).items).toEqual([]);
    });

    test('treats an expired item as absent everywhere, swept or not', async () => {
      const { store, clock } = await fresh();
      await store.transact([{ op: 'put', pk: 'p', sk: 'a', value: 1, expiresAt: clock.now() + 1_000 }, put('b', 2)]);
      expect(await store.get('p', 'a')).toMatchObject({ value: 1, expiresAt: clock.now() + 1_000 });
      clock.advance(1_000);
      expect(await store.get('p', 'a')).toBeUndefined();
      expect((await store.query({ partition: 'p', limit: 10 })).items.map((i) => i.sk)).toEqual(['b']);
      await expect(store.transact([{ op: 'update', pk: 'p', sk: 'a', value: 2, ifVersion: 1 }])).rejects.toMatchObject({
        code: 'version_conflict',
      });
      await store.transact([put('a', 3)]);
      expect(await store.get('p', 'a')).toEqual({ pk: 'p', sk: 'a', value: 3, version: 1 });
      await store.sweep();
      expect(await store.get('p', 'a')).toMatchObject({ value: 3 });
    });

    test('an update without an expiry clears the old one', async () => {
      const { store, clock } = await fresh();
      await store.transact([{ op: 'put', pk: 'p', sk: 'a', value: 1, expiresAt: clock.now() + 1_000 }]);
      await store.transact([{ op: 'update', pk: 'p', sk: 'a', value: 2, ifVersion: 1 }]);
      clock.advance(5_000);
      await store.sweep();
      expect(await store.get('p', 'a')).toEqual({ pk: 'p', sk: 'a', value: 2, version: 2 });
    });

    test('pages through any range in order, in both directions', async () => {
      const key = fc.string({
        unit: fc.integer({ min: 0x20, max: 0x7e }).map((c) => String.fromCharCode(c)),
        minLength: 1,
        maxLength: 4,
      });
      await fc.assert(
        fc.asyncProperty(
          fc.uniqueArray(key, { maxLength: 25 }),
          fc.option(key, { nil: undefined }),
          fc.option(key, { nil: undefined }),
          fc.integer({ min: 1, max: 7 }),
          fc.boolean(),
          async (keys, from, to, limit, reverse) => {
            const { store } = await fresh();
            for (const sk of keys) await store.transact([put(sk), put(sk, {}, 'other')]);
            const seen: string[] = [];
            let cursor: string | undefined;
            do {
              const page = await store.query({
                partition: 'p',
                limit,
                reverse,
                ...(from === undefined ? {} : { from }),
                ...(to === undefined ? {} : { to }),
                ...(cursor === undefined ? {} : { cursor }),
              });
              expect(page.items.length).toBeLessThanOrEqual(limit);
              seen.push(...page.items.map((i) => i.sk));
              cursor = page.cursor;
            } while (cursor !== undefined);
            const expected = keys
              .filter((k) => (from === undefined || k >= from) && (to === undefined || k < to))
              .sort((a, b) => (a < b ? -1 : 1));
            expect(seen).toEqual(reverse ? expected.reverse() : expected);
            await store.close();
          },
        ),
        { numRuns: 60 },
      );
    });

    test('finds a prefix and nothing else', async () => {
      const { store } = await fresh();
      await store.transact(['a', 'a/', 'a/1', 'a/~', 'b/1'].map((sk) => put(sk)));
      const { items } = await store.query({ partition: 'p', limit: 10, ...withPrefix('a/') });
      expect(items.map((i) => i.sk)).toEqual(['a/', 'a/1', 'a/~']);
    });

    test('keeps events in the order of commits, per stream and over all', async () => {
      const { store, clock } = await fresh();
      await store.transact([put('a')], [event('e1', clock.now()), event('e2', clock.now(), 'other')]);
      await store.transact([], [event('e3', clock.now())]);
      const all = await store.outbox(undefined, 10);
      expect(all.map((e) => e.id)).toEqual(['e1', 'e2', 'e3']);
      expect(all[0]).toMatchObject(event('e1', clock.now()));
      expect((await store.outbox(all[0]?.cursor, 10)).map((e) => e.id)).toEqual(['e2', 'e3']);
      expect((await store.outbox(undefined, 10, 'acme')).map((e) => e.id)).toEqual(['e1', 'e3']);
      expect((await store.outbox(undefined, 1)).map((e) => e.id)).toEqual(['e1']);
      expect(await store.outbox(await store.newestCursor(), 10)).toEqual([]);
      expect((await store.outbox(all[1]?.cursor, 10)).map((e) => e.id)).toEqual(['e3']);
      const [first] = await store.outbox(undefined, 10, 'acme');
      expect((await store.outbox(first?.cursor, 10, 'acme')).map((e) => e.id)).toEqual(['e3']);
      expect(await store.outbox(await store.newestCursor('acme'), 10, 'acme')).toEqual([]);
      expect(await store.outbox(await store.newestCursor(), 10, 'acme')).toEqual([]);
    });

    test('forgets old events when swept, and never hands out a position twice', async () => {
      const { store, clock } = await fresh();
      await store.transact([], [event('e1', clock.now())]);
      clock.advance(23 * 3_600_000);
      await store.sweep();
      const [first] = await store.outbox(undefined, 10);
      expect(first?.id).toBe('e1');
      clock.advance(2 * 3_600_000);
      await store.sweep();
      expect(await store.outbox(undefined, 10)).toEqual([]);
      await store.transact([], [event('e2', clock.now())]);
      expect((await store.outbox(first?.cursor, 10)).map((e) => e.id)).toEqual(['e2']);
    });

    test('ends a stream: what is in it is read until its time has come, by late writers too, and another stream goes on', async () => {
      const { store, clock } = await fresh();
      await store.endStream('never');
      await store.transact([], [event('e1', clock.now()), event('o1', clock.now(), 'other')]);
      await store.endStream('acme');
      await store.endStream('acme');
      await store.transact([], [event('e2', clock.now()), event('o2', clock.now(), 'other')]);
      expect((await store.outbox(undefined, 10, 'acme')).map((e) => e.id)).toEqual(['e1', 'e2']);
      expect((await store.outbox(undefined, 10)).map((e) => e.id)).toEqual(['e1', 'o1', 'e2', 'o2']);
      clock.advance(25 * 3_600_000);
      await store.sweep();
      expect(await store.outbox(undefined, 10, 'acme')).toEqual([]);
      await store.transact([], [event('o3', clock.now(), 'other')]);
      expect((await store.outbox(undefined, 10)).map((e) => e.id)).toEqual(['o3']);
    });

    test('does nothing once its caller has given up', async () => {
      const { store } = await fresh();
      const signal = AbortSignal.abort(new Error('given up'));
      await expect(store.transact([put('a')], [], signal)).rejects.toThrow('given up');
      await expect(store.get('p', 'a', signal)).rejects.toThrow('given up');
      expect(await store.get('p', 'a')).toBeUndefined();
    });
  });
}
