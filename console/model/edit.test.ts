import { describe, expect, test } from 'vitest';
import { save } from './edit.ts';

class Stale extends Error {}

/** An object at a broker that heeds If-Match; `meanwhile` happens before each write. */
function at(
  labels: Record<string, string>,
  meanwhile: readonly ((now: Stored) => Stored)[],
  wanted: Record<string, string> = { mine: 'yes' },
) {
  let stored: Stored = { version: 1, labels, phase: 'Ready' };
  const from = stored;
  const left = [...meanwhile];
  const saved = () =>
    save({
      from,
      fields: (of: Stored) => of.labels,
      wanted,
      read: async () => stored,
      write: async (version) => {
        const change = left.shift();
        if (change !== undefined) stored = { ...change(stored), version: stored.version + 1 };
        if (version !== stored.version) throw new Stale();
        stored = { ...stored, labels: wanted, version: version + 1 };
        return stored;
      },
      isStale: (error) => error instanceof Stale,
      what: 'the labels',
    });
  return { saved, now: () => stored };
}
interface Stored {
  readonly version: number;
  readonly labels: Record<string, string>;
  readonly phase: string;
}

describe('an edit is saved', () => {
  test('when nothing changed meanwhile', async () => {
    expect((await at({ a: '1' }, []).saved()).labels).toEqual({ mine: 'yes' });
  });

  test('when only other fields changed, as those of a live peering do', async () => {
    const object = at({ a: '1', b: '2' }, [(now) => ({ ...now, phase: 'Degraded', labels: { b: '2', a: '1' } })]);
    expect(await object.saved()).toMatchObject({ labels: { mine: 'yes' }, phase: 'Degraded' });
  });

  test('once, when its own first request arrived and only the answer was lost', async () => {
    const object = at({ a: '1' }, [(now) => ({ ...now, labels: { x: '1', y: '2' } })], { y: '2', x: '1' });
    expect(await object.saved()).toMatchObject({ labels: { x: '1', y: '2' }, version: 2 });
  });

  test('and not over what another writer saved, which stays', async () => {
    const object = at({ a: '1' }, [(now) => ({ ...now, labels: { theirs: 'yes' } })]);
    await expect(object.saved()).rejects.toThrow('the labels changed while you were editing');
    expect(object.now().labels).toEqual({ theirs: 'yes' });
  });

  test('and not for ever, where the object changes before each write', async () => {
    const restless = Array.from({ length: 9 }, (_, at) => (now: Stored) => ({ ...now, phase: `${at}` }));
    await expect(at({ a: '1' }, restless).saved()).rejects.toThrow(Stale);
  });
});
