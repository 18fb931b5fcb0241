/** Real Liqo 1.2.0 beside Isthmus on whole clusters, each borrowing from the other, and whether both still write what was recorded. */
import { readFile } from 'node:fs/promises';
import path from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { parse } from 'yaml';
import { repositoryRoot } from '#test/testbed/repository-root.ts';
import { type Exchange, outcome } from './exchange.ts';
import { recordExchanges } from './live/record.ts';
import { type LiqoWorld, openLiqoWorld } from './live/world.ts';

const log = (line: string): void => console.error(line);
let world: LiqoWorld;
let live: readonly Exchange[];

// Building Liqo takes minutes, once on a machine.
beforeAll(async () => {
  world = await openLiqoWorld({ dir: path.join(repositoryRoot, '.build', 'liqo'), log });
  live = await recordExchanges(world, log);
}, 3_600_000);
afterAll(async () => await world?.close(), 180_000);

test.each([
  ['consumer', 0],
  ['provider', 1],
] as const)('Liqo as %s and Isthmus write what is recorded', async (liqoIs, i) => {
  const text = await readFile(path.join(import.meta.dirname, `liqo-1.2.0-${liqoIs}.yaml`), 'utf8');
  expect(outcome(live[i] as Exchange)).toEqual(outcome(parse(text) as Exchange));
});
