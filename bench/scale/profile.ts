/** CPU profiles of the controllers of both sides, to find the cost of a pod: `--profile`. */
import { type ChildProcess, spawn } from 'node:child_process';
import { mkdirSync } from 'node:fs';
import path from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import type { ProductClusters } from '#test/harness/product-clusters.ts';
import { names } from '../peering/peering-clusters.ts';
import { sides } from './usage.ts';

/** Starts recording; the returned function ends it and gives back the files, which Chromium's developer tools and speedscope read. */
export async function startProfiles(root: string, clusters: ProductClusters): Promise<() => Promise<string[]>> {
  const folder = path.join(root, '.build', 'profiles');
  mkdirSync(folder, { recursive: true });
  const recordings: { readonly child: ChildProcess; readonly file: string }[] = [];
  for (const side of sides) {
    const [pid] = clusters.ownPids(names[side]).agent;
    if (pid === undefined) continue;
    process.kill(pid, 'SIGUSR1');
    await delay(500);
    const file = path.join(folder, `${side}-${Date.now()}.cpuprofile`);
    const script = path.join(root, 'bench', 'scale', 'profiler.mjs');
    const child = spawn('nsenter', ['--target', String(pid), '--net', '--', process.execPath, script, file], {
      stdio: ['pipe', 'pipe', 'inherit'],
    });
    await new Promise<void>((resolve, reject) => {
      child.stdout?.once('data', () => resolve());
      child.once('exit', (code) => reject(new Error(`the profiler of the ${side} ended with ${code}`)));
    });
    recordings.push({ child, file });
  }
  return async () => {
    await Promise.all(
      recordings.map(
        ({ child }) =>
          new Promise<void>((resolve) => {
            child.removeAllListeners('exit');
            child.once('exit', () => resolve());
            child.stdin?.end();
          }),
      ),
    );
    return recordings.map(({ file }) => file);
  };
}
