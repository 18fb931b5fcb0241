/**
 * Volumes that are being made at a provider while the agents are killed with SIGKILL: each claim ends with one volume, its pod runs, and what is
 * deleted leaves nothing. `agent/storage/interrupted.real.test.ts` has the same between two API servers, without kubelets.
 */
import path from 'node:path';
import { afterAll, beforeAll, expect, test, vi } from 'vitest';
import { persistentVolumeClaims, persistentVolumes } from '#shared/domain/core-kinds.ts';
import type { KubeObject } from '#shared/domain/kube-object.ts';
import { systemClock } from '#shared/ports/system-clock.ts';
import { retainedVolumes } from '#shared/schema/isthmus/retained-volume.ts';
import { eventually } from '#test/harness/eventually.ts';
import { removeProductClusters } from '#test/harness/product-clusters.ts';
import { repositoryRoot } from '#test/testbed/repository-root.ts';
import {
  type ClusterName,
  clusterNames,
  consumer,
  isReady,
  patience,
  provider,
  type Stage,
} from '../whole-clusters/stage.ts';
import { claim, on, openStorageStage, shop, shopThere, writer } from './storage-stage.ts';

const place = { root: repositoryRoot, dir: path.join(repositoryRoot, '.build', 'storage-killed-agents') };
vi.setConfig({ testTimeout: 300_000, hookTimeout: 180_000 });
let stage: Stage;

beforeAll(async () => {
  await removeProductClusters(place);
  // Kubernetes' own limit of 300 s for what is killed often would only measure the kubelet's back-off.
  stage = await openStorageStage({ ...place, brokerPort: 7691, cluster: { restartDelaySeconds: 5 } });
}, 900_000);
afterAll(() => removeProductClusters(place), 180_000);

const inRound = <T extends KubeObject>(
  round: string,
  all: readonly T[],
  nameOf: (one: T) => string | undefined = ({ metadata }) => metadata.name,
): T[] => all.filter((one) => nameOf(one)?.startsWith(`${round}-`));

const claimsThere = async (round: string) =>
  inRound(round, await stage.api(provider).list(persistentVolumeClaims, { namespace: shopThere }));
const volumesAt = async (cluster: ClusterName, round: string) =>
  inRound(round, await stage.api(cluster).list(persistentVolumes), ({ spec }) => spec?.claimRef?.name);
const claimNames = async (cluster: ClusterName, round: string): Promise<(string | undefined)[]> =>
  (await volumesAt(cluster, round)).map(({ spec }) => spec?.claimRef?.name).sort();

async function nodeOf(name: string): Promise<string | undefined> {
  return (await stage.podThat(consumer, [shop, name], 'is ready', isReady)).spec?.nodeName;
}

function kill(clusters: readonly ClusterName[]): void {
  for (const pid of clusters.flatMap((cluster) => stage.world.agentPids(cluster))) process.kill(pid, 'SIGKILL');
}

const both = [...clusterNames];
test.each([
  { round: 'first', clusters: both, afterMs: undefined },
  { round: 'early', clusters: both, afterMs: 150 },
  { round: 'home', clusters: [consumer] as ClusterName[], afterMs: 500 },
  { round: 'there', clusters: [provider] as ClusterName[], afterMs: 900 },
  { round: 'late', clusters: both, afterMs: 1_500 },
])(
  'three claims have one volume each when the agents of $clusters are back, killed $afterMs ms after the claims were made, and leave nothing when they are deleted',
  async ({ round, clusters, afterMs }) => {
    const names = [0, 1, 2].map((i) => `${round}-${i}`);
    await stage.apply(
      consumer,
      ...names.flatMap((name) => [claim(name), writer(name, name, `by ${name}`, on(provider))]),
    );
    if (afterMs === undefined)
      await eventually('the first real claim', async () => (await claimsThere(round)).length > 0, {
        ...patience,
        everyMs: 5,
      });
    else await systemClock.sleep(afterMs);
    kill(clusters);
    expect(await Promise.all(names.map(nodeOf))).toEqual(names.map(() => provider));
    await eventually(
      'nothing is marked as unfinished',
      async () =>
        (await claimsThere(round)).every(({ metadata }) => !metadata.annotations?.['isthmus.dev/unpublished']),
      patience,
    );
    expect((await claimsThere(round)).map(({ metadata }) => metadata.name).sort()).toEqual(names);
    for (const cluster of clusterNames) expect(await claimNames(cluster, round)).toEqual(names);
    const written = await Promise.all(
      names.map((name) => stage.kubectl(consumer, ['-n', shop, 'exec', name, '--', 'cat', '/data/notes'])),
    );
    expect(written.map(({ stdout }) => stdout)).toEqual(names.map((name) => `by ${name}\n`));

    for (const kind of ['pod', 'pvc']) {
      const gone = await stage.kubectl(consumer, ['-n', shop, 'delete', kind, ...names, '--wait']);
      expect(gone, gone.stderr).toMatchObject({ code: 0 });
    }
    await eventually(
      'nothing of the claims is left',
      async () => {
        const left = [
          ...(await claimsThere(round)),
          ...(await volumesAt(consumer, round)),
          ...(await volumesAt(provider, round)),
        ];
        if (left.length > 0) throw new Error(left.map(({ kind, metadata }) => `${kind} ${metadata.name}`).join('\n'));
        return true;
      },
      patience,
    );
    expect(inRound(round, await stage.api(provider).list(retainedVolumes), ({ spec }) => spec.claim?.name)).toEqual([]);
  },
);
