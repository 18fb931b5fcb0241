/** A list in parts, each of which passes by itself: a run goes on where the last one of the same commit ended. */
import { nameList } from '#shared/domain/name-list.ts';
import { nothing, type Result, sum } from './closing.ts';
import { type Pass, passesOn, recordPass } from './passes.ts';
import { areInMemory, type Rows, type Suite } from './suites.ts';

/** A file of real components or whole clusters is a part; a check and unit tests, of which each file takes a moment, are one each. `filesOf` lists the files of a suite. */
export const partsOf = (rows: Rows, filesOf: (suite: Suite) => readonly string[]): readonly Suite[] =>
  rows.flat().flatMap((suite): readonly Suite[] => {
    if (suite.kind === 'check' || areInMemory(suite.projects)) return [suite];
    return filesOf(suite).map((file) => ({ ...suite, name: `${suite.name}: ${file}`, paths: [file], again: false }));
  });

/** Parts whose names hold one of the words; all without words. Rejects words that fit nothing. */
export function chosenParts(parts: readonly Suite[], words: readonly string[]): readonly Suite[] {
  const stray = words.find((word) => !parts.some(({ name }) => name.includes(word)));
  if (stray !== undefined)
    throw new Error(
      `no part has ${JSON.stringify(stray)} in its name; there are: ${parts.map(({ name }) => name).join(', ')}`,
    );
  return words.length === 0 ? parts : parts.filter(({ name }) => words.some((word) => name.includes(word)));
}

export interface Pieces {
  /** Of all parts that have passed on the commit, and of those that failed now. */
  readonly total: Result;
  /** What the run says of itself. */
  readonly summary: string;
  readonly isWhole: boolean;
}

interface PiecesOptions {
  readonly all: readonly Suite[];
  /** Those that this run may take. */
  readonly chosen: readonly Suite[];
  readonly commit: string;
  /** The record of passes. */
  readonly file: string;
  /** No part begins after these; no limit when absent. */
  readonly minutes: number | undefined;
  /** Files that differ from the commit by now. */
  readonly changed: () => readonly string[];
  readonly take: (part: Suite) => Promise<{ readonly result: Result; readonly seconds: number }>;
  /** Milliseconds. */
  readonly now: () => number;
}

/** Takes what has not passed on this commit yet, and ends when the tree is not that of the commit any more. A part without a single test is a failure: it proves nothing. */
export async function inPieces({
  all,
  chosen,
  commit,
  file,
  minutes,
  changed,
  take,
  now,
}: PiecesOptions): Promise<Pieces> {
  const began = now();
  const before = passesOn(file, commit);
  let failed = nothing;
  let taken = 0;
  for (const part of chosen) {
    if (before.has(part.name)) continue;
    if (minutes !== undefined && now() - began >= minutes * 60_000) break;
    taken += 1;
    const { result, seconds } = await take(part);
    const differing = changed();
    if (result.failed > 0) failed = sum(failed, { ...result, passed: 0 });
    else if (differing.length > 0) {
      const why = `the working tree changed meanwhile, so it passed on no commit: ${nameList(differing)}`;
      failed = sum(failed, { ...nothing, failed: 1, told: [`${part.name}\n${why}`] });
    } else if (result.passed === 0)
      failed = sum(failed, { ...nothing, failed: 1, told: [`${part.name}\nno test ran`] });
    else recordPass(file, commit, part.name, { passed: result.passed, seconds });
    if (differing.length > 0) break;
  }
  const passes = passesOn(file, commit);
  const passed = all.flatMap(({ name }): Pass[] => [passes.get(name)].filter((pass) => pass !== undefined));
  const left = all.filter(({ name }) => !passes.has(name)).map(({ name }) => name);
  const earlier = all.filter(({ name }) => before.has(name)).length;
  const which = left.length === 0 ? `all ${all.length} parts passed` : `${passed.length} of ${all.length} parts passed`;
  const rest = left.length === 0 ? '' : `; not passed: ${nameList(left)}`;
  return {
    total: { ...failed, passed: passed.reduce((tests, one) => tests + one.passed, 0) },
    summary: `commit ${commit}: ${which}, ${earlier} of them in earlier runs and ${passed.length - earlier} of ${taken} now${rest}`,
    isWhole: left.length === 0,
  };
}
