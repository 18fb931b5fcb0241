/** How long each suite took when it last passed, kept in the cache, and what that says about the time that is left. */
import { mkdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import * as z from 'zod';

/** Seconds by the name of the suite. */
export type Durations = Readonly<Record<string, number>>;

const Recorded = z.record(z.string(), z.number());

/** Empty when there is no record, or none that can be read: it only costs the estimate. */
export function readDurations(file: string): Durations {
  try {
    return Recorded.parse(JSON.parse(readFileSync(file, 'utf8')));
  } catch {
    return {};
  }
}

export function recordDuration(file: string, suite: string, seconds: number): void {
  const all = { ...readDurations(file), [suite]: Math.round(seconds * 10) / 10 };
  mkdirSync(path.dirname(file), { recursive: true });
  const half = `${file}.${process.pid}`;
  writeFileSync(half, `${JSON.stringify(all, null, 2)}\n`);
  renameSync(half, file);
}

/** `90 s` below two minutes, else whole minutes. */
export const inWords = (seconds: number): string =>
  seconds < 120 ? `${Math.round(seconds)} s` : `${Math.round(seconds / 60)} min`;

export interface Progress {
  readonly suite: string;
  /** Of this suite, seconds. */
  readonly elapsed: number;
  /** Names of the suites that run after it, not beside it. */
  readonly after: readonly string[];
}

/** One line: how far the suite is by its last duration, and what is left of the whole list as far as every duration is known. */
export function progressLine({ suite, elapsed, after }: Progress, last: Durations): string {
  const expected = last[suite];
  if (expected === undefined)
    return `-- ${suite}: ${inWords(elapsed)}, no earlier duration is recorded on this machine`;
  const unknown = after.filter((name) => last[name] === undefined);
  const rest = after.reduce((sum, name) => sum + (last[name] ?? 0), 0);
  const left = Math.max(0, expected - elapsed) + rest;
  const late = elapsed > expected * 1.2 + 5 ? ', later than the last time' : '';
  const inAll = unknown.length === 0 ? `about ${inWords(left)} left in all` : `at least ${inWords(left)} left in all`;
  return `-- ${suite}: ${inWords(elapsed)} of about ${inWords(expected)}${late}; ${inAll}`;
}
