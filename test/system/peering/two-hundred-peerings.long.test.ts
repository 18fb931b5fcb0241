/**
 * Peerings with network, made and ended over and over on two real clusters, while gateways, agents and node processes are killed. Each becomes
 * Ready with both ends Connected. `ISTHMUS_LONG_PEERINGS` is how many (200), `ISTHMUS_LONG_SEED` repeats the kills of an earlier run,
 * `ISTHMUS_KEEP_CLUSTERS=1` leaves the clusters running when it has failed.
 */
import path from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { systemClock } from '#shared/ports/system-clock.ts';
import type { Peering } from '#shared/schema/api/resources.ts';
import { eventually } from '#test/harness/eventually.ts';
import { type OwnPids, openProductClusters, removeProductClusters } from '#test/harness/product-clusters.ts';
import { repositoryRoot } from '#test/testbed/repository-root.ts';
import { nothingLeft } from '../whole-clusters/inventory.ts';
import {
  type ClusterName,
  clusterNames,
  consumer,
  createStage,
  provider,
  type Stage,
} from '../whole-clusters/stage.ts';

const count = Number(process.env.ISTHMUS_LONG_PEERINGS ?? 200);
const seed = Number(process.env.ISTHMUS_LONG_SEED ?? Date.now() % 1_000_000);
const place = { root: repositoryRoot, dir: path.join(repositoryRoot, '.build', 'long-peerings') };
/** Kubernetes' own limit of 300 s for what is killed often would only measure the kubelet's back-off, for hours. */
const restartDelaySeconds = 5;
const withinMs = 120_000;

interface Kill {
  readonly cluster: ClusterName;
  readonly what: keyof OwnPids;
  readonly afterMs: number;
}

/** The same ones for the same seed. */
function createChance(from: number): (below: number) => number {
  let state = from >>> 0;
  return (below) => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return Math.floor((state / 2 ** 32) * below);
  };
}

const victims = ['gateway', 'gateway', 'agent', 'node'] as const;

let passed = false;
let stage: Stage;
beforeAll(async () => {
  await removeProductClusters(place);
  const clusters = await openProductClusters({
    ...place,
    clusters: clusterNames.map((name) => ({ name, restartDelaySeconds })),
    brokerPort: 7843,
  });
  await Promise.all(clusterNames.map((name) => clusters.join(name)));
  stage = await createStage(clusters);
}, 900_000);
afterAll(async () => {
  if (passed || process.env.ISTHMUS_KEEP_CLUSTERS !== '1') await removeProductClusters(place);
}, 180_000);

async function kill({ cluster, what, afterMs }: Kill): Promise<void> {
  await systemClock.sleep(afterMs);
  for (const pid of stage.world.ownPids(cluster)[what]) {
    try {
      process.kill(pid, 'SIGKILL');
    } catch {
      // It has ended by itself.
    }
  }
}

const isLinked = ({ phase, network }: Peering): boolean =>
  phase === 'Ready' && network?.link?.consumer.status === 'Connected' && network.link.provider.status === 'Connected';

/** Resolves with the seconds it took. */
async function untilLinked(what: string): Promise<number> {
  const began = performance.now();
  const look = async (): Promise<true> => {
    const found = await stage.peering();
    if (found !== undefined && isLinked(found)) return true;
    throw new Error(`${found?.phase}: ${found?.waitingFor}; link ${JSON.stringify(found?.network?.link)}`);
  };
  await eventually(what, look, { withinMs, everyMs: 500 });
  return (performance.now() - began) / 1_000;
}

test(
  `${count} peerings in a row become Ready while processes are killed, and leave nothing`,
  async () => {
    console.log(`ISTHMUS_LONG_SEED=${seed}`);
    const chance = createChance(seed);
    const undisturbed: number[] = [];
    const disturbed: number[] = [];
    for (let turn = 1; turn <= count; turn += 1) {
      const kills = Array.from(
        { length: chance(3) },
        (): Kill => ({
          cluster: clusterNames[chance(clusterNames.length)]!,
          what: victims[chance(victims.length)]!,
          afterMs: chance(4_000),
        }),
      );
      const killed = kills.map(({ cluster, what, afterMs }) => `${what} of ${cluster} after ${afterMs} ms`).join(', ');
      const reported = `peering ${turn} of ${count}${killed ? `, killed: ${killed}` : ''}`;
      const began = performance.now();
      const ended = await stage.world.isthmus('peer', consumer, provider, '--cpu', '1', '--memory', '1Gi');
      expect(ended.code, `${reported}\n${ended.stdout}${ended.stderr}`).toBe(0);
      await Promise.all([untilLinked(`${reported}, is Ready`), ...kills.map(kill)]);
      const seconds = (performance.now() - began) / 1_000;
      (kills.length === 0 ? undisturbed : disturbed).push(seconds);
      console.log(`${reported}: ${seconds.toFixed(2)} s`);
      // A kill after it had become Ready: it does so again.
      if (kills.length > 0) await untilLinked(`${reported}, is Ready again`);
      const leaving = performance.now();
      const gone = await stage.world.isthmus('unpeer', consumer, provider, '--wait');
      expect(gone.code, `${reported}, unpeered\n${gone.stdout}${gone.stderr}`).toBe(0);
      console.log(`ended after ${((performance.now() - leaving) / 1_000).toFixed(2)} s`);
    }
    for (const [name, all] of Object.entries({ undisturbed, disturbed })) {
      const sorted = [...all].sort((a, b) => a - b).map((seconds) => seconds.toFixed(1));
      console.log(`${name}: ${sorted.length}, seconds until Ready: ${sorted.join(' ')}`);
    }
    for (const name of clusterNames) await nothingLeft(name, stage.api(name), stage.baseline[name]);
    passed = true;
  },
  count * withinMs,
);
