import { expect, test } from 'vitest';
import { playSwarm, quantile } from './scenario.ts';
import { seeded } from './swarm.ts';

test('forty agents enrol, peer, idle and come back, and each request is counted', async () => {
  const { phases, ready } = await playSwarm({
    clusters: 40,
    clustersPerTenant: 10,
    peerings: 4,
    idleMs: 600_000,
    random: seeded(7),
    log: () => undefined,
  });
  const [enrol, peer, idle, storm] = phases;
  expect([enrol?.requests, storm?.requests, ready]).toEqual([80, 40, 4]);
  expect(peer?.writeUnits).toBeGreaterThan(4 * 50);
  // Two heartbeats of 300 s each, ten sweeps; those that peered are heard of every 15 s for a while.
  expect(idle?.requests).toBeGreaterThanOrEqual(2 * 40 + 10);
  expect(idle?.clockSeconds).toBe(600);
  for (const { times, hottest } of phases) {
    expect(quantile(times, 0.5)).toBeLessThanOrEqual(quantile(times, 0.99));
    expect(hottest.partition).not.toBe('');
  }
});
