/** npm run rounds: peerings made and ended in mixed ways on two real clusters that have joined a broker, until a round leaves a trace. */
import path from 'node:path';
import { parseArgs } from 'node:util';
import { repositoryRoot } from '#test/testbed/repository-root.ts';
import { openGround } from '../brokerless/ground.ts';
import { type Maker, makers } from './peering-methods.ts';
import { type Round, runRounds } from './rounds.ts';

const { values } = parseArgs({
  options: {
    rounds: { type: 'string', default: '100' },
    seed: { type: 'string', default: '1' },
    only: { type: 'string', multiple: true, default: Object.keys(makers) },
    keep: { type: 'boolean', default: false },
  },
});
const [rounds, seed] = [Number(values.rounds), Number(values.seed)];
const only = values.only as Maker[];
const say = (line: string): boolean => process.stderr.write(`${line}\n`);
const seconds = (ms: number): string => `${(ms / 1_000).toFixed(1)} s`;
const quantile = (all: readonly number[], part: number): number =>
  all.toSorted((a, b) => a - b)[Math.min(all.length - 1, Math.floor(part * all.length))] ?? 0;

const line = ({ number, made, ended, readyMs, goneMs, rssMib }: Round): string =>
  `${number}\tby ${made}\tended by ${ended}\tready ${seconds(readyMs)}\tgone ${seconds(goneMs)}\t${rssMib} MiB`;

function summary(): string {
  const times = (what: 'readyMs' | 'goneMs'): string => {
    const all = done.map((round) => round[what]);
    const [median, late, last] = [0.5, 0.95, 1].map((part) => seconds(quantile(all, part)));
    return `${median} (median), ${late} (95 %), ${last} (longest)`;
  };
  const [first, last] = [done[0]?.rssMib, done.at(-1)?.rssMib];
  return [
    `peered after ${times('readyMs')}`,
    `as before after ${times('goneMs')}`,
    `RSS of all our processes of both clusters: ${first} MiB after round 1, ${last} MiB after round ${done.length}\n`,
  ].join('\n');
}

const dir = process.env.ISTHMUS_BED ?? path.join(repositoryRoot, '.build', 'rounds');
const ground = await openGround({ dir, brokerPort: 7683, joined: true, keep: values.keep, log: say });
const done: Round[] = [];
try {
  const onRound = (round: Round): void => {
    done.push(round);
    say(line(round));
  };
  await runRounds(ground, { rounds, seed, makers: only, onRound });
  process.stdout.write(`${rounds} rounds of seed ${seed}, each left both clusters as they were\n`);
} catch (error) {
  process.stderr.write(`${(error as Error).message}\nagain with: npm run rounds -- --seed ${seed}\n`);
  process.exitCode = 1;
} finally {
  if (done.length > 0) process.stdout.write(summary());
  await ground.close();
}
