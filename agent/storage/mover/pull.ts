/** The side that gets the volume: passes of rsync, and at the end the comparison of all checksums. */
import { spawn } from 'node:child_process';
import type { Clock } from '#shared/ports/clock.ts';
import { type Checksum, checksumOf } from './checksum.ts';
import {
  bytesDone,
  compareArgs,
  copyArgs,
  isDisturbance,
  isInterruption,
  measureArgs,
  statsOf,
  type Way,
} from './rsync.ts';

/** What a mover that copies leaves as its termination message. */
export interface MoverResult {
  readonly ok: boolean;
  /** Why not. */
  readonly error?: string;
  readonly passes?: number;
  /** Of files that were compared and are equal; absent: they were not compared. */
  readonly verified?: { readonly files: number; readonly bytes: number };
}

export interface MoverProgress {
  readonly pass: number;
  readonly bytes: number;
  readonly total: number;
  readonly rate: number;
}

export interface PullDeps {
  readonly clock: Clock;
  readonly way: Way;
  /** The program. */
  readonly rsync?: string;
  readonly greet: () => Promise<void>;
  /** Of the device with the data. */
  readonly checksum: (signal: AbortSignal) => Promise<Checksum>;
  readonly report: (progress: MoverProgress) => void;
}

const reportMs = 1_000;
const greetMs = 120_000;
const mostInterruptions = 10;
const mostPasses = 5;
const smallBytes = 4 * 1024 * 1024;
const shownDifferences = 5;

interface Ended {
  readonly code: number;
  readonly output: string;
  readonly errors: string;
}

function run(deps: PullDeps, args: readonly string[], onOutput: (piece: string) => void = () => undefined) {
  return new Promise<Ended>((resolve) => {
    const child = spawn(deps.rsync ?? 'rsync', args, { stdio: ['ignore', 'pipe', 'pipe'] });
    let [output, errors] = ['', ''];
    child.stdout.setEncoding('utf8').on('data', (piece: string) => {
      output = `${output}${piece}`.slice(-65_536);
      onOutput(piece);
    });
    child.stderr.setEncoding('utf8').on('data', (piece: string) => {
      errors = `${errors}${piece}`.slice(-2_048);
    });
    child.on('error', (error) => resolve({ code: 127, output, errors: String(error) }));
    child.on('close', (code) => resolve({ code: code ?? 255, output, errors }));
  });
}

class Failed extends Error {}

const lastWords = ({ code, errors }: Ended): string =>
  `rsync ended with ${code}: ${errors
    .trim()
    .slice(-600)
    .split(/\s*\n\s*/)
    .join('; ')}`;

/** Again after interruptions, as long as the other side comes back. */
async function insist(deps: PullDeps, args: readonly string[], onOutput?: (piece: string) => void): Promise<Ended> {
  for (let interruptions = 0; ; interruptions++) {
    await reach(deps);
    const ended = await run(deps, args, onOutput);
    if (!isInterruption(ended.code)) return ended;
    if (interruptions >= mostInterruptions)
      throw new Failed(`${lastWords(ended)}, after ${interruptions} interruptions`);
  }
}

async function reach({ clock, greet, way }: PullDeps, signal?: AbortSignal): Promise<void> {
  const deadline = clock.now() + greetMs;
  for (;;) {
    try {
      return await greet();
    } catch (error) {
      if (clock.now() >= deadline)
        throw new Failed(`the mover with the data does not answer at ${way.host} for ${greetMs / 1_000} s: ${error}`);
      await clock.sleep(reportMs, signal);
    }
  }
}

interface Pass {
  readonly ended: Ended;
  readonly literalBytes: number;
  readonly totalBytes: number;
}

async function pass(deps: PullDeps, number: number): Promise<Pass> {
  const { clock, way, report } = deps;
  const measured = await insist(deps, measureArgs(way));
  const total = statsOf(measured.output).transferredBytes;
  const startedMs = clock.now();
  let [reportedMs, bytes] = [Number.NEGATIVE_INFINITY, 0];
  const tell = (): void => {
    const seconds = (clock.now() - startedMs) / 1_000;
    const rate = seconds > 0 ? Math.round(bytes / seconds) : 0;
    report({ pass: number, bytes, total: Math.max(total, bytes), rate });
    reportedMs = clock.now();
  };
  tell();
  const ended = await insist(deps, copyArgs(way), (piece) => {
    bytes = bytesDone(piece) ?? bytes;
    if (clock.now() - reportedMs >= reportMs) tell();
  });
  const stats = statsOf(ended.output);
  if (ended.code === 0) bytes = stats.transferredBytes;
  tell();
  return { ended, literalBytes: stats.literalBytes, totalBytes: stats.totalBytes };
}

/** While an application writes: passes until little is left. */
export function pullLive(deps: PullDeps): Promise<MoverResult> {
  return asResult(async () => {
    for (let number = 1; ; number++) {
      const { ended, literalBytes } = await pass(deps, number);
      if (ended.code !== 0 && !isDisturbance(ended.code)) throw new Failed(lastWords(ended));
      if (number >= mostPasses || (ended.code === 0 && literalBytes <= smallBytes)) return { ok: true, passes: number };
    }
  });
}

/** When nothing writes any more: the last pass, and proof that both sides are equal. */
export function pullFinal(deps: PullDeps): Promise<MoverResult> {
  return asResult(async () => {
    const { ended } = await pass(deps, 1);
    if (ended.code !== 0) throw new Failed(lastWords(ended));
    const { files, totalBytes } = statsOf(ended.output);
    const differences = deps.way.isDevice
      ? await differencesOfDevices(deps, totalBytes)
      : await differencesAfterChecksums(deps);
    if (differences.length > 0)
      throw new Failed(
        `both sides differ after the last pass, so something still writes: ${differences.slice(0, shownDifferences).join('; ')}`,
      );
    return { ok: true, verified: { files, bytes: totalBytes } };
  });
}

/**
 * A file that is mapped into memory gets a new time at the first write to a page, and none at later ones: a pass that has seen that time leaves the
 * file as it was copied. So what differs is copied once more, by checksums.
 */
async function differencesAfterChecksums(deps: PullDeps): Promise<string[]> {
  const differences = await differencesOfFolders(deps);
  if (differences.length === 0) return differences;
  const { ended } = await pass({ ...deps, way: { ...deps.way, byChecksum: true } }, 2);
  if (ended.code !== 0) throw new Failed(lastWords(ended));
  return await differencesOfFolders(deps);
}

async function differencesOfFolders(deps: PullDeps): Promise<string[]> {
  const compared = await insist(deps, compareArgs(deps.way));
  if (compared.code !== 0) throw new Failed(lastWords(compared));
  return compared.output.split('\n').filter((line) => line.trim() !== '');
}

async function differencesOfDevices(deps: PullDeps, size: number): Promise<string[]> {
  const { clock, way, report } = deps;
  const startedMs = clock.now();
  let reportedMs = Number.NEGATIVE_INFINITY;
  const tell = (bytes: number): void => {
    if (clock.now() - reportedMs < reportMs) return;
    reportedMs = clock.now();
    const seconds = (reportedMs - startedMs) / 1_000;
    report({ pass: 2, bytes, total: size, rate: seconds > 0 ? Math.round(bytes / seconds) : 0 });
  };
  // What one side fails at, the other side is not read for any longer.
  const reading = new AbortController();
  const hashing = checksumOf(way.to, tell, reading.signal, size).catch((error: unknown) => {
    throw new Failed(`the device that was copied to cannot be read: ${error}`);
  });
  const both = Promise.all([checksumThere(deps, reading.signal), hashing]);
  const [there, here] = await both.finally(() => reading.abort());
  if (there.bytes !== size) return [`the device had ${size} bytes, and now has ${there.bytes}`];
  return there.sha256 === here.sha256 ? [] : [`the checksums of the ${size} bytes of the device`];
}

/** Again after interruptions, like a pass. */
async function checksumThere(deps: PullDeps, signal: AbortSignal): Promise<Checksum> {
  for (let interruptions = 0; ; interruptions++) {
    await reach(deps, signal);
    try {
      return await deps.checksum(signal);
    } catch (error) {
      signal.throwIfAborted();
      if (interruptions >= mostInterruptions) throw new Failed(`${error}, after ${interruptions} interruptions`);
    }
  }
}

async function asResult(work: () => Promise<MoverResult>): Promise<MoverResult> {
  try {
    return await work();
  } catch (error) {
    if (error instanceof Failed) return { ok: false, error: error.message };
    throw error;
  }
}
