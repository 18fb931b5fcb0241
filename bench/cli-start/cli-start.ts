/** How long the packed command line takes from its start to its end, with this Node and with Node 24; `node` alone beside it. */
import { execFileSync } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { packCli } from '#scripts/release/cli-package.ts';
import { cacheDir } from '#scripts/setup/cache-dir.ts';
import { ensureNode24 } from '#scripts/setup/node24.ts';
import { type BenchOptions, type BenchResult, median, thisMachine } from '../result.ts';

export async function run({ root, runs = 20, log }: BenchOptions): Promise<BenchResult> {
  const folder = mkdtempSync(path.join(os.tmpdir(), 'isthmus-start-'));
  try {
    const { tarball } = await packCli(root, folder);
    execFileSync('tar', ['-xzf', tarball, '-C', folder]);
    const program = path.join(folder, 'package', 'bin', 'isthmus.mjs');
    const node24 = await ensureNode24({ root, cache: cacheDir(), log });
    const times = (node: string, ...args: readonly string[]): readonly number[] =>
      Array.from({ length: runs + 1 }, () => {
        const began = performance.now();
        execFileSync(node, args, {
          stdio: 'ignore',
          env: { ...process.env, NODE_COMPILE_CACHE: path.join(folder, 'cache') },
        });
        return (performance.now() - began) / 1_000;
      }).slice(1); // the first one fills caches
    const samples = times(node24, program, 'version', '--client');
    const phases = {
      'Node 24': median(samples),
      'Node 24, --help': median(times(node24, program, '--help')),
      'this Node': median(times(process.execPath, program, 'version', '--client')),
      'Node 24 alone': median(times(node24, '--eval', '0')),
    };
    return { name: 'cli-start', unit: 's', value: median(samples), samples, phases, machine: thisMachine(root) };
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}
