import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { nothing } from './closing.ts';
import { passesOn, recordPass } from './passes.ts';
import { chosenParts, inPieces, partsOf } from './pieces.ts';
import { lists, type Suite } from './suites.ts';

let folder = '';
let file = '';
beforeEach(() => {
  folder = mkdtempSync(path.join(os.tmpdir(), 'isthmus-passes-'));
  file = path.join(folder, 'new', 'passes.json');
});
afterEach(() => rmSync(folder, { recursive: true }));

const part = (name: string): Suite => ({ name, kind: 'check', argv: [] });
const parts = ['one', 'two', 'three'].map(part);
const good = { ...nothing, passed: 5 };
const bad = { ...nothing, passed: 4, failed: 1, told: ['two > it fails'] };

interface Run {
  readonly commit?: string;
  readonly minutes?: number;
  readonly chosen?: readonly Suite[];
  readonly results?: Readonly<Record<string, typeof good>>;
  /** The part that runs while a file is edited. */
  readonly edited?: string;
}
/** Each part takes a minute. */
async function run({ commit = 'c1', minutes, chosen = parts, results = {}, edited }: Run = {}) {
  const taken: string[] = [];
  let now = 0;
  const take = async ({ name }: Suite) => {
    taken.push(name);
    now += 60_000;
    return { result: results[name] ?? good, seconds: 60 };
  };
  const changed = () => (taken.at(-1) === edited ? [' M agent/main.ts'] : []);
  return { ...(await inPieces({ all: parts, chosen, commit, file, minutes, changed, take, now: () => now })), taken };
}

test('a run takes only what has not passed on the commit, and counts what has', async () => {
  const first = await run({ results: { two: bad } });
  expect(first.taken).toEqual(['one', 'two', 'three']);
  expect(first.total).toMatchObject({ passed: 10, failed: 1, told: ['two > it fails'] });
  expect(first.isWhole).toBe(false);
  const second = await run();
  expect(second.taken).toEqual(['two']);
  expect(second.total).toMatchObject({ passed: 15, failed: 0 });
  expect(second.isWhole).toBe(true);
  expect(second.summary).toBe('commit c1: all 3 parts passed, 2 of them in earlier runs and 1 of 1 now');
});

test('what passed on another commit runs again', async () => {
  await run();
  expect((await run({ commit: 'c2' })).taken).toEqual(['one', 'two', 'three']);
});

test('what passed while the working tree changed has passed on no commit, and the run ends there', async () => {
  const { taken, total, isWhole } = await run({ edited: 'two' });
  expect([taken, isWhole]).toEqual([['one', 'two'], false]);
  expect(total).toMatchObject({ passed: 5, failed: 1 });
  expect(total.told.join()).toContain(
    'the working tree changed meanwhile, so it passed on no commit:  M agent/main.ts',
  );
  expect((await run()).taken).toEqual(['two', 'three']);
});

test('no part begins after the minutes, and the summary says what has not passed', async () => {
  const first = await run({ minutes: 2 });
  expect(first.taken).toEqual(['one', 'two']);
  expect(first.summary).toBe(
    'commit c1: 2 of 3 parts passed, 0 of them in earlier runs and 2 of 2 now; not passed: three',
  );
  expect(first.isWhole).toBe(false);
  expect((await run({ minutes: 1 })).taken).toEqual(['three']);
});

test('a run of some parts is not whole', async () => {
  const { isWhole, taken } = await run({ chosen: chosenParts(parts, ['tw']) });
  expect([isWhole, taken]).toEqual([false, ['two']]);
  expect(() => chosenParts(parts, ['four'])).toThrow(/no part has "four" in its name; there are: one, two, three/);
});

test('a part of which no test ran has not passed', async () => {
  const { total } = await run({ results: { one: nothing } });
  expect(total).toMatchObject({ failed: 1, told: ['one\nno test ran'] });
  expect([...passesOn(file, 'c1').keys()]).toEqual(['two', 'three']);
});

test('a damaged record is an empty one, and passes of the newest 20 commits are kept', () => {
  const damaged = path.join(folder, 'damaged.json');
  writeFileSync(damaged, '{"c1":');
  expect(passesOn(damaged, 'c1').size).toBe(0);
  for (let n = 0; n < 25; n++) recordPass(file, `c${n}`, 'one', { passed: 1, seconds: 1 });
  expect([passesOn(file, 'c4').size, passesOn(file, 'c5').size, passesOn(file, 'c24').size]).toEqual([0, 1, 1]);
});

test('each file on real components and whole clusters is a part, unit tests and checks are whole', () => {
  const names = partsOf(lists.long, (suite) => [`${suite.name}.a.ts`, `${suite.name}.b.ts`]).map(({ name }) => name);
  expect(names).toContain('unit tests on Node 24');
  expect(names).toContain('10,000 orderings');
  expect(names).toContain('second copies and long waits: second copies and long waits.b.ts');
  expect(new Set(names).size).toBe(names.length);
});
