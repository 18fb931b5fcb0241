import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import type { ConfigMap } from '#shared/domain/kube-object.ts';
import { ManualClock } from '#shared/ports/clock.ts';
import { OwnWrites } from './own-writes.ts';
import { PendingEntries } from './pending-entries.ts';
import { Store } from './store.ts';

const at = (name: string) => ({ namespace: 'demo', name });
const object = (name: string, uid: string, resourceVersion: string): ConfigMap => ({
  apiVersion: 'v1',
  kind: 'ConfigMap',
  metadata: { ...at(name), uid, resourceVersion },
});
const lifetimeMs = 1_000;

function follow() {
  const clock = new ManualClock();
  const store = new Store<ConfigMap>(() => undefined);
  const cache = {
    get: ({ namespace, name }: { namespace?: string; name: string }) => store.get(`${namespace}/${name}`),
    list: () => store.list(),
    subscribe: store.subscribe.bind(store),
  };
  const own = new OwnWrites<ConfigMap>({ clock, lifetimeMs });
  own.follow(cache);
  const seen = (name = 'a') => own.get(cache, at(name))?.metadata;
  return { clock, store, cache, own, seen };
}

type Version = [uid: string, resourceVersion: string];

describe('over the cache', () => {
  test.each([
    ['nothing', undefined, ['u1', '5'], ['u1', '5']],
    ['an older version', ['u1', '4'], ['u1', '5'], ['u1', '5']],
    ['an older version of fewer digits', ['u1', '9'], ['u1', '10'], ['u1', '10']],
    [
      'an older version beyond the exact numbers',
      ['u1', '9007199254740992'],
      ['u1', '9007199254740993'],
      ['u1', '9007199254740993'],
    ],
    ['the same version', ['u1', '5'], ['u1', '5'], ['u1', '5']],
    ['a newer version', ['u1', '6'], ['u1', '5'], ['u1', '6']],
    ['the predecessor of that name', ['u0', '4'], ['u1', '5'], ['u1', '5']],
    ['the successor of that name', ['u2', '6'], ['u1', '5'], ['u2', '6']],
    ['a version that is no integer', ['u1', 'x4'], ['u1', '5'], ['u1', 'x4']],
  ] satisfies [string, Version | undefined, Version, Version][])(
    'of a write and a cache that shows %s, the newer one counts',
    (_, cached, written, expected) => {
      const { store, own, seen } = follow();
      if (cached) store.put(object('a', ...cached));
      own.wrote(object('a', ...written));
      expect([seen()?.uid, seen()?.resourceVersion]).toEqual(expected);
    },
  );

  test('an object that was just created is listed, in its namespace', () => {
    const { store, cache, own } = follow();
    store.put(object('a', 'u1', '1'));
    own.wrote(object('b', 'u2', '2'));
    const names = (namespace?: string) => own.list(cache, namespace).map(({ metadata }) => metadata.name);
    expect([names(), names('demo'), names('other')]).toEqual([['a', 'b'], ['a', 'b'], ['a']]);
  });

  test('the cache is ahead again once it shows what was written', () => {
    const { store, cache, own } = follow();
    expect(own.isAhead(cache, at('a'))).toBe(false);
    own.wrote(object('a', 'u1', '1'));
    expect(own.isAhead(cache, at('a'))).toBe(true);
    store.put(object('a', 'u1', '1'));
    expect(own.isAhead(cache, at('a'))).toBe(false);
  });

  test('a write that the cache never shows counts until its lifetime has passed', () => {
    const { clock, own, seen } = follow();
    own.wrote(object('a', 'u1', '1'));
    clock.advance(lifetimeMs - 1);
    expect(seen()?.uid).toBe('u1');
    clock.advance(1);
    expect(seen()).toBeUndefined();
  });

  test('an object that the cache has shown and lost is gone at once, in a cache that was opened since, too', () => {
    const { store, own, seen } = follow();
    own.wrote(object('a', 'u1', '1'));
    store.put(object('a', 'u1', '1'));
    expect(own.get({ get: () => undefined }, at('a'))).toBeUndefined();
    store.remove('demo/a');
    expect(seen()).toBeUndefined();
  });

  test('the answer to a write that its deletion has overtaken counts for nothing', () => {
    const { store, own, seen } = follow();
    store.put(object('a', 'u1', '1'));
    store.remove('demo/a');
    own.wrote(object('a', 'u1', '2'));
    expect(seen()).toBeUndefined();
  });

  test('an object that the API server called gone is hidden by its uid, and its successor is not', () => {
    const { store, cache, own, seen } = follow();
    store.put(object('a', 'u1', '1'));
    own.deleted(object('a', 'u1', '1'));
    expect([seen(), own.list(cache), own.isGone('u1')]).toEqual([undefined, [], true]);
    store.put(object('a', 'u1', '2'));
    expect(seen()).toBeUndefined();
    store.put(object('a', 'u2', '3'));
    expect(seen()?.uid).toBe('u2');
  });
});

describe('deletions', () => {
  test('an object is known to be gone when its deletion was delivered, and not before', () => {
    const { store, own } = follow();
    store.put(object('a', 'u1', '1'));
    store.put(object('a', 'u1', '2'));
    expect(own.isGone('u1')).toBe(false);
    store.remove('demo/a');
    expect([own.isGone('u1'), own.isGone('u2')]).toEqual([true, false]);
    store.put(object('a', 'u1', '3'));
    expect(own.isGone('u1')).toBe(false);
  });

  test('one whose name another has by now is gone, the other is not', () => {
    const { store, own } = follow();
    store.put(object('a', 'u1', '1'));
    store.put(object('a', 'u2', '2'));
    expect([own.isGone('u1'), own.isGone('u2')]).toEqual([true, false]);
  });

  test('of very many only the latest are remembered', () => {
    const { store, own } = follow();
    for (let i = 0; i <= 10_000; i += 1) {
      store.put(object('a', `u${i}`, '1'));
      store.remove('demo/a');
    }
    expect([own.isGone('u0'), own.isGone('u1'), own.isGone('u10000')]).toEqual([false, true, true]);
  });

  test('a uid leaves its set with its object, and does not come back', () => {
    const { store, own } = follow();
    const uids = own.uids();
    store.put(object('a', 'u1', '1'));
    uids.add('u1');
    store.put(object('a', 'u1', '2'));
    expect(uids.has('u1')).toBe(true);
    store.remove('demo/a');
    expect(uids.has('u1')).toBe(false);
    uids.add('u1');
    expect([uids.has('u1'), uids.delete('u1')]).toEqual([false, false]);
  });

  test('a cache whose following has ended is not heard any more', () => {
    const { store, cache } = follow();
    const own = new OwnWrites<ConfigMap>({ clock: new ManualClock() });
    const stop = new AbortController();
    own.follow(cache, stop.signal);
    stop.abort();
    own.follow(cache, stop.signal);
    store.put(object('a', 'u1', '1'));
    store.remove('demo/a');
    expect(own.isGone('u1')).toBe(false);
  });
});

test('entries are never more than were written in one lifetime, however many came before', () => {
  const entries = new PendingEntries<number>(lifetimeMs);
  let most = 0;
  for (let now = 0; now < 10_000; now += 10) {
    entries.set(`key-${now}`, now, now);
    most = Math.max(most, entries.size);
  }
  expect(most).toBe(lifetimeMs / 10);
});

const keys = ['a', 'b', 'c'] as const;
const key = fc.constantFrom(...keys);
const step = fc.oneof(
  {
    weight: 4,
    arbitrary: fc.record({ do: fc.constantFrom('write' as const, 'delete' as const), key, isOurs: fc.boolean() }),
  },
  { weight: 4, arbitrary: fc.record({ do: fc.constant('answer' as const), which: fc.nat(9) }) },
  { weight: 5, arbitrary: fc.record({ do: fc.constant('deliver' as const), key }) },
  { weight: 2, arbitrary: fc.record({ do: fc.constant('replay' as const), key, which: fc.nat(9) }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constant('relist' as const) }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constant('tick' as const), ms: fc.integer({ min: 1, max: 600 }) }) },
);
type Step = typeof step extends fc.Arbitrary<infer T> ? T : never;

interface Event {
  readonly version: number;
  readonly object: ConfigMap;
  readonly isDeletion: boolean;
}

/** An API server whose events and answers come late, in any order between objects, twice, or never. */
class World {
  readonly #world = follow();
  readonly history: Record<string, Event[]> = { a: [], b: [], c: [] };
  readonly #delivered: Record<string, number> = { a: 0, b: 0, c: 0 };
  readonly #answers: Event[] = [];
  /** What the API server has answered to us, and when. */
  readonly #known: { readonly event: Event; readonly at: number }[] = [];
  #version = 8;

  now(name: string): ConfigMap | undefined {
    const last = this.history[name]?.at(-1);
    return last?.isDeletion ? undefined : last?.object;
  }

  seen(name: string): ConfigMap | undefined {
    return this.#world.own.get(this.#world.cache, at(name));
  }

  listed(): string[] {
    return this.#world.own
      .list(this.#world.cache)
      .map(({ metadata }) => `${metadata.name} ${metadata.resourceVersion}`);
  }

  take(one: Step): void {
    const { clock, store } = this.#world;
    switch (one.do) {
      case 'write':
      case 'delete':
        this.#change(one.key, one.do === 'delete', one.isOurs);
        break;
      case 'answer':
        this.#answer(one.which);
        break;
      case 'deliver':
        this.#deliver(one.key);
        break;
      case 'replay': {
        const event = this.history[one.key]?.[one.which];
        const cached = this.#world.cache.get(at(one.key))?.metadata.uid;
        // A watch goes on from the version that it has reached: it never shows a predecessor in place of its successor.
        const isPossible = cached === undefined || cached === event?.object.metadata.uid;
        if (event && isPossible && one.which < (this.#delivered[one.key] ?? 0)) this.#tell(event);
        break;
      }
      case 'relist': {
        const objects = keys.flatMap((name) => this.now(name) ?? []);
        for (const name of keys) this.#delivered[name] = this.history[name]?.length ?? 0;
        store.replace(new Map(objects.map((o) => [`demo/${o.metadata.name}`, o])));
        break;
      }
      case 'tick':
        clock.advance(one.ms);
    }
  }

  #change(name: string, isDeletion: boolean, isOurs: boolean): void {
    const before = this.now(name);
    if (isDeletion && !before) return;
    this.#version += 1;
    const next = object(name, before?.metadata.uid ?? `u${this.#version}`, `${this.#version}`);
    const event = { version: this.#version, object: isDeletion && before ? before : next, isDeletion };
    this.history[name]?.push(event);
    if (isOurs) this.#answers.push(event);
  }

  #answer(which: number): void {
    const { own, clock } = this.#world;
    const [event] = this.#answers.splice(which % Math.max(1, this.#answers.length), 1);
    if (!event) return;
    if (event.isDeletion) own.deleted(event.object);
    else own.wrote(event.object);
    // An answer that a newer one has overtaken prolongs nothing.
    if (event.version > this.#floor(event.object.metadata.name)) this.#known.push({ event, at: clock.now() });
  }

  #deliver(name: string): void {
    const event = this.history[name]?.[this.#delivered[name] ?? 0];
    if (!event) return;
    this.#delivered[name] = (this.#delivered[name] ?? 0) + 1;
    this.#tell(event);
  }

  #tell({ object: { metadata }, object: one, isDeletion }: Event): void {
    if (isDeletion) this.#world.store.remove(`demo/${metadata.name}`, metadata.uid);
    else this.#world.store.put(one);
  }

  settle(): void {
    while (this.#answers.length > 0) this.#answer(0);
    for (const name of keys) for (const _ of this.history[name] ?? []) this.#deliver(name);
  }

  #floor(name: string): number {
    const now = this.#world.clock.now();
    return this.#known
      .filter(({ event, at: when }) => event.object.metadata.name === name && now - when < lifetimeMs)
      .reduce((most, { event }) => Math.max(most, event.version), 0);
  }

  /** What is seen is no older than anything that the API server has answered to us within a lifetime. */
  check(): void {
    for (const name of keys) {
      const floor = this.#floor(name);
      const version = this.seen(name)?.metadata.resourceVersion;
      const wasAbsent = floor === 0 || this.history[name]?.some((e) => e.isDeletion && e.version >= floor);
      const isCurrent = version === undefined ? wasAbsent : Number(version) >= floor;
      if (!isCurrent) throw new Error(`${name} is seen at ${version}, and ${floor} was written`);
    }
    const each = keys
      .flatMap((name) => this.seen(name) ?? [])
      .map(({ metadata }) => `${metadata.name} ${metadata.resourceVersion}`);
    expect(this.listed().sort()).toEqual(each.sort());
  }
}

const histories = fc.array(step, { maxLength: 60, size: 'max' });

test('in any order of writes, answers and events, late, repeated or lost, nothing older than our own writes is seen, and in the end what is', () => {
  fc.assert(
    fc.property(histories, (steps) => {
      const world = new World();
      for (const one of steps) {
        world.take(one);
        world.check();
      }
      world.settle();
      world.check();
      world.take({ do: 'relist' });
      world.take({ do: 'tick', ms: lifetimeMs });
      for (const name of keys) expect(world.seen(name)).toEqual(world.now(name));
    }),
    { numRuns: 500 },
  );
});

test('when every answer and every event has come once and in order, what is seen is what is, without waiting', () => {
  fc.assert(
    fc.property(histories, (steps) => {
      const world = new World();
      for (const one of steps) if (one.do !== 'relist' && one.do !== 'replay' && one.do !== 'tick') world.take(one);
      world.settle();
      for (const name of keys) expect(world.seen(name)).toEqual(world.now(name));
    }),
    { numRuns: 1_000 },
  );
});
