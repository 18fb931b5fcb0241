/** npm run orderings: 10,000 orderings of the objects of offloading, each by its seed, and how long they took to come to rest. */
import { parseArgs } from 'node:util';
import { runOrdering } from '#test/orderings/orderings.ts';

const { values } = parseArgs({
  options: { orderings: { type: 'string', default: '10000' }, seed: { type: 'string', default: '1' } },
});
const total = Number(values.orderings);
const first = Number(values.seed);
const settled: number[] = [];
let steps = 0;
const startedAt = Date.now();
for (let seed = first; seed < first + total; seed++) {
  try {
    const ordering = await runOrdering(seed);
    settled.push(ordering.settledMs);
    steps += ordering.steps.length;
  } catch (error) {
    process.stderr.write(
      `${(error as Error).message}\nagain with: npm run orderings -- --seed ${seed} --orderings 1\n`,
    );
    process.exit(1);
  }
  if ((seed - first + 1) % 1_000 === 0)
    process.stderr.write(`${seed - first + 1} orderings, ${Math.round((Date.now() - startedAt) / 1_000)} s\n`);
}
settled.sort((a, b) => a - b);
const quantile = (part: number): number =>
  (settled[Math.min(settled.length - 1, Math.floor(part * settled.length))] ?? 0) / 1_000;
process.stdout.write(
  `${total} orderings of ${steps} steps, no pod stuck; at rest on the agents' clock after ${quantile(0.5)} s (median), ${quantile(0.99)} s (99 %), ${quantile(1)} s (longest)\n`,
);
