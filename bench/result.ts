/** What every measurement is given, its shape, and how it is printed and kept. */
import { execFileSync } from 'node:child_process';
import { mkdirSync, writeFileSync } from 'node:fs';
import os from 'node:os';
import path from 'node:path';

/** A bench reads the options that it has a use for, and has defaults for all of them. */
export interface BenchOptions {
  readonly root: string;
  readonly log: (line: string) => void;
  readonly runs?: number | undefined;
  readonly clusters?: number | undefined;
  readonly pods?: number | undefined;
  readonly seconds?: number | undefined;
  /** Pods made in each second. */
  readonly perSecond?: number | undefined;
  readonly tenants?: number | undefined;
  /** Keep CPU profiles of the controllers. */
  readonly profile?: boolean;
}

export interface BenchResult {
  readonly name: string;
  readonly unit: string;
  /** The figure to quote: a median unless the bench says otherwise. */
  readonly value: number;
  readonly samples: readonly number[];
  /** Named parts of a sample, or further figures, in the same unit unless the name says otherwise; medians. */
  readonly phases: Readonly<Record<string, number>>;
  /** Everything that the figures were made of. */
  readonly raw?: unknown;
  readonly machine: Machine;
}

export interface Machine {
  readonly cpu: string;
  readonly cores: number;
  readonly memoryGiB: number;
  readonly kernel: string;
  readonly node: string;
  readonly commit: string;
}

export function thisMachine(root: string): Machine {
  return {
    cpu: os.cpus()[0]?.model ?? 'unknown',
    cores: os.cpus().length,
    memoryGiB: Math.round(os.totalmem() / 2 ** 30),
    kernel: os.release(),
    node: process.version,
    commit: execFileSync('git', ['rev-parse', '--short', 'HEAD'], { cwd: root, encoding: 'utf8' }).trim(),
  };
}

export function median(values: readonly number[]): number {
  const sorted = [...values].sort((a, b) => a - b);
  const middle = sorted.length >> 1;
  const upper = sorted[middle] ?? Number.NaN;
  return sorted.length % 2 === 1 ? upper : ((sorted[middle - 1] ?? upper) + upper) / 2;
}

/** The medians of each phase over all samples. */
export function medianPhases(samples: readonly Readonly<Record<string, number>>[]): Record<string, number> {
  const names = [...new Set(samples.flatMap((sample) => Object.keys(sample)))];
  return Object.fromEntries(
    names.map((name) => [name, median(samples.flatMap((s) => (s[name] === undefined ? [] : [s[name]])))]),
  );
}

/** Writes the raw result beside earlier ones and returns the file. */
export function keep(root: string, result: BenchResult, at: Date): string {
  const folder = path.join(root, 'bench', 'results');
  mkdirSync(folder, { recursive: true });
  const file = path.join(folder, `${result.name}-${at.toISOString().replaceAll(':', '')}.json`);
  writeFileSync(file, `${JSON.stringify(result, undefined, 2)}\n`);
  return file;
}

export function print(result: BenchResult): string {
  const number = (value: number) =>
    Math.abs(value) >= 100
      ? value.toFixed(0)
      : Math.abs(value) >= 0.1 || value === 0
        ? value.toFixed(2)
        : value.toPrecision(3);
  const { machine } = result;
  const width = Math.max(...Object.keys(result.phases).map((name) => name.length), 6);
  return [
    `${result.name}: ${number(result.value)} ${result.unit} (median of ${result.samples.length}, ${number(Math.min(...result.samples))} to ${number(Math.max(...result.samples))})`,
    ...Object.entries(result.phases).map(([name, value]) => `  ${name.padEnd(width)}  ${number(value)}`),
    `  on ${machine.cores} x ${machine.cpu}, ${machine.memoryGiB} GiB, Linux ${machine.kernel}, Node ${machine.node}, commit ${machine.commit}`,
  ].join('\n');
}
