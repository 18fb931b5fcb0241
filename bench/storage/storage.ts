/**
 * How fast a move copies 1 GiB, beside a bare rsync over the same link, and how long its pods wait for the last pass and the comparison. The link is the
 * loopback of a network namespace, once with 1 Gbit/s and once without a limit: there only the processors of this one machine limit both sides of both.
 */
import { spawn } from 'node:child_process';
import { createInterface } from 'node:readline';
import { ended, Movers } from '#test/harness/movers.ts';
import { type BenchOptions, type BenchResult, median, medianPhases, thisMachine } from '../result.ts';
import { port, type Sample } from './copies.ts';

/** The burst holds some of the largest packets of loopback. */
const limited = 'tc qdisc add dev lo root tbf rate 1gbit burst 256kb latency 20ms';
const links = { '1 Gbit/s': `ip link set lo up && ${limited}`, 'no limit': 'ip link set lo up' } as const;
type Link = keyof typeof links;

async function copiesOver(link: Link, runs: number, { root, log }: BenchOptions): Promise<Sample[]> {
  const entry = [process.execPath, 'scripts/run.mjs', 'bench/storage/in-namespace.ts', String(runs)];
  const child = spawn('unshare', ['--net', 'sh', '-c', `${links[link]} && exec "$@"`, 'sh', ...entry], {
    cwd: root,
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  const samples: Sample[] = [];
  for await (const line of createInterface({ input: child.stdout })) {
    const one = JSON.parse(line) as Sample;
    samples.push(one);
    log(
      `${link}, run ${samples.length}: ${one.copied.toFixed(0)} MiB/s, bare rsync ${one.bare.toFixed(0)} MiB/s, frozen for ${one.freezeSeconds.toFixed(1)} s`,
    );
  }
  const code = await ended(child);
  if (code !== 0) throw new Error(`the copies over a link of ${link} ended with ${code}`);
  return samples;
}

export async function run(options: BenchOptions): Promise<BenchResult> {
  const { root, runs = 3 } = options;
  // Fetches what the movers need, which the namespaces have no way to.
  (await Movers.start(port)).close();
  const slow = await copiesOver('1 Gbit/s', runs, options);
  const fast = await copiesOver('no limit', runs, options);
  const phasesOf = (link: Link, all: readonly Sample[]) =>
    medianPhases(
      all.map((one) => ({
        [`bare rsync, ${link}`]: one.bare,
        [`share of bare rsync, ${link} (ratio)`]: one.copied / one.bare,
        [`copy while it is written to, ${link} (s)`]: one.liveSeconds,
        [`its passes, ${link} (count)`]: one.passes,
        [`last pass and comparison, frozen, ${link} (s)`]: one.freezeSeconds,
      })),
    );
  const samples = slow.map(({ copied }) => copied);
  return {
    name: 'storage',
    unit: 'MiB/s',
    value: median(samples),
    samples,
    phases: {
      ...phasesOf('1 Gbit/s', slow),
      'copied, no limit': median(fast.map(({ copied }) => copied)),
      ...phasesOf('no limit', fast),
    },
    raw: { slow, fast },
    machine: thisMachine(root),
  };
}
