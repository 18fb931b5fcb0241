/**
 * More orders of the same manifests than `npm test` has, two mistakes in them, certificates that end during a separation, peerings made and ended in
 * mixed ways on clusters that no broker knew at first, a rotation of the consumer's key, and a provider that signs no certificates.
 */
import path from 'node:path';
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest';
import { repositoryRoot } from '#test/testbed/repository-root.ts';
import { linkedAs, linkedAtRest } from '../rounds/linked.ts';
import { isAsBefore, isPeered, runRounds, tracesAtRest } from '../rounds/rounds.ts';
import type { Traces } from '../rounds/traces.ts';
import { type Ground, openGround } from './ground.ts';
import { applyGuide, deleteGuide } from './guide.ts';
import { mistakes } from './mistakes.ts';
import { rotation } from './rotation.ts';
import { separation } from './separation.ts';
import { tokens } from './tokens.ts';

const dir = process.env.ISTHMUS_BED ?? path.join(repositoryRoot, '.build', 'brokerless-orders');
vi.setConfig({ testTimeout: 240_000, hookTimeout: 180_000 });
let ground: Ground;
let unlinked: Traces = {};
let linked: Traces = {};

beforeAll(async () => {
  ground = await openGround({ dir, brokerPort: 7685 });
  await ground.remember();
  unlinked = await tracesAtRest(ground);
  await applyGuide(ground.stage, ground.guide, 1);
  await isPeered(ground);
  linked = await linkedAtRest(ground);
  await deleteGuide(ground.stage, ground.guide, 1);
  await isAsBefore(ground, unlinked);
}, 900_000);
afterAll(async () => await ground?.close(), 180_000);

describe.each([2, 3])("the manifests of Liqo's guide in an order drawn by seed %i", (seed) => {
  test('give the kernels of both the same links, rules, routes and nft tables', async () => {
    await applyGuide(ground.stage, ground.guide, seed);
    await isPeered(ground);
    await linkedAs(ground, linked);
  });

  test('and, deleted, leave both clusters as they were to the last byte', async () => {
    await deleteGuide(ground.stage, ground.guide, seed);
    await isAsBefore(ground, unlinked);
  });
});

mistakes(() => ({ ground, unlinked, linked }));
separation(() => ground);

describe('clusters that join a broker later', () => {
  test('peer by the broker, by a Peering object, by manifests and by liqoctl, end it in other ways, and keep no byte of it', async () => {
    await ground.join();
    await ground.remember();
    const rounds = await runRounds(ground, { rounds: 4, seed: 1 });
    for (const { made, ended, readyMs, goneMs } of rounds)
      console.log(`by ${made}, ended by ${ended}: ready after ${readyMs} ms, gone after ${goneMs} ms`);
    expect(new Set(rounds.map(({ made }) => made)).size).toBe(4);
  }, 400_000);
});

rotation(() => ground);
tokens(() => ground);
