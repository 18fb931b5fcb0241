/** Which parts of a list have passed on which commit, kept in the cache. */
import { mkdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import * as z from 'zod';

const Pass = z.object({ passed: z.number(), seconds: z.number() });
export type Pass = z.infer<typeof Pass>;
const Recorded = z.record(z.string(), z.record(z.string(), Pass));

/** Of how many commits: the newest. */
const kept = 20;

/** Passes by the name of the part. Empty when there is no record, or none that can be read: parts run again. */
export function passesOn(file: string, commit: string): ReadonlyMap<string, Pass> {
  return new Map(Object.entries(read(file)[commit] ?? {}));
}

export function recordPass(file: string, commit: string, part: string, pass: Pass): void {
  const { [commit]: before = {}, ...others } = read(file);
  const all = [...Object.entries(others), [commit, { ...before, [part]: pass }]].slice(-kept);
  mkdirSync(path.dirname(file), { recursive: true });
  const half = `${file}.${process.pid}`;
  writeFileSync(half, `${JSON.stringify(Object.fromEntries(all), null, 2)}\n`);
  renameSync(half, file);
}

function read(file: string): z.infer<typeof Recorded> {
  try {
    return Recorded.parse(JSON.parse(readFileSync(file, 'utf8')));
  } catch {
    return {};
  }
}
