/**
 * An unmodified `liqoctl move volume` on two real clusters: it copies a volume by restic to the other cluster and back, and when it ends after it has
 * deleted the claim and before it has restored its copy, the data is in a RetainedVolume.
 */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import path from 'node:path';
import { afterAll, beforeAll, expect, test, vi } from 'vitest';
import { cacheDir } from '#scripts/setup/cache-dir.ts';
import { persistentVolumeClaims } from '#shared/domain/core-kinds.ts';
import { storageNamespace } from '#shared/domain/storage-keys.ts';
import { type RetainedVolume, retainedVolumes } from '#shared/schema/isthmus/retained-volume.ts';
import { eventually } from '#test/harness/eventually.ts';
import { inOrder } from '#test/harness/in-order.ts';
import { removeProductClusters } from '#test/harness/product-clusters.ts';
import { type Ended, run } from '#test/harness/program.ts';
import { buildLiqo } from '#test/testbed/build.ts';
import { buildResticImages, resticServerImage } from '#test/testbed/debian-images.ts';
import { repositoryRoot } from '#test/testbed/repository-root.ts';
import {
  type ClusterName,
  consumer,
  isReady,
  patience,
  provider,
  reported,
  type Stage,
} from '../whole-clusters/stage.ts';
import { claim, genuine, on, openStorageStage, readClaim, shop, writer } from './storage-stage.ts';

const place = { root: repositoryRoot, dir: path.join(repositoryRoot, '.build', 'storage-liqoctl') };
vi.setConfig({ testTimeout: 600_000, hookTimeout: 180_000 });
const log = (line: string): void => console.error(line);
let stage: Stage;
let liqoctl: string;

// Building liqoctl takes minutes, once on a machine.
beforeAll(async () => {
  await removeProductClusters(place);
  liqoctl = await buildLiqo('liqoctl', { log });
  const images = await buildResticImages(cacheDir(), log);
  stage = await openStorageStage({
    ...place,
    brokerPort: 7699,
    async before({ bed }) {
      for (const cluster of bed.clusters) for (const image of images) await cluster.importImage(image);
    },
  });
}, 1_800_000);
afterAll(() => removeProductClusters(place), 180_000);
inOrder('file');

const kubectl = (cluster: ClusterName, ...args: readonly string[]): Promise<string> =>
  stage.world.cluster(cluster).kubectl(...args);

const moveArguments = (name: string, node: string): readonly string[] => [
  ...['move', 'volume', name, '--namespace', shop, '--target-node', node],
  ...['--restic-server-image', resticServerImage, '--kubeconfig', stage.world.cluster(consumer).kubeconfigPath],
];
const move = (name: string, node: string): Promise<Ended> =>
  run(liqoctl, moveArguments(name, node), { timeoutMs: 500_000 });

/** By a pod that writes it, ready and gone again: liqoctl refuses claims that pods use. */
async function write(name: string, node: string, text: string): Promise<void> {
  await stage.apply(consumer, claim(name), writer('author', name, text, on(node)));
  await stage.podThat(consumer, [shop, 'author'], 'is ready', isReady);
  await kubectl(consumer, '-n', shop, 'delete', 'pod', 'author', '--wait');
}

const read = (name: string, claimName: string) => readClaim(stage, name, claimName);

/** Records of a claim's data in a cluster, once there are as many. */
const records = (cluster: ClusterName, name: string, count: number): Promise<readonly RetainedVolume[]> =>
  eventually(
    `${count} RetainedVolumes of ${name} in ${cluster}`,
    async () => {
      const all = await stage.api(cluster).list(retainedVolumes);
      const found = all.filter(({ spec }) => spec.claim?.name === name);
      if (found.length === count) return found;
      throw new Error(JSON.stringify(all.map(({ spec, status }) => ({ spec, status }))));
    },
    patience,
  );

const found = (name: string) => stage.api(consumer).get(persistentVolumeClaims, { namespace: shop, name });
/** A move that began before would wait for the offloading of the last one. */
const nothingOfLiqoctl = (): Promise<boolean> =>
  eventually(
    'nothing is left of liqoctl',
    async () => {
      const kinds = 'statefulset,service,namespaceoffloading';
      const left = await kubectl(consumer, '-n', storageNamespace, 'get', kinds, '-o', 'name');
      if (left === '') return true;
      throw new Error(left);
    },
    patience,
  );

test('a volume of this cluster is at the provider afterwards, with its bytes, and what it was is kept here', async () => {
  await write('book', genuine, 'first line');
  const moved = await move('book', provider);
  expect(moved.code, reported(moved)).toBe(0);
  expect(await read('reader', 'book')).toEqual({ text: 'first line\n', node: provider });
  expect(await records(consumer, 'book', 1)).toHaveLength(1);
  await nothingOfLiqoctl();
});

test('it comes back the same way, and what it was at the provider is kept there', async () => {
  const moved = await move('book', genuine);
  expect(moved.code, reported(moved)).toBe(0);
  expect(await read('reader', 'book')).toEqual({ text: 'first line\n', node: genuine });
  expect(await records(provider, 'book', 1)).toHaveLength(1);
  await nothingOfLiqoctl();
});

test('B130 the data is in a RetainedVolume when liqoctl is given up before it has restored its copy, and the claim has it again by `isthmus volume adopt`', async () => {
  await write('diary', genuine, 'dear diary');
  const uidOf = async () => (await found('diary'))?.metadata.uid;
  const before = await uidOf();
  // The pod that would restore the copy finds no node.
  await kubectl(consumer, 'cordon', provider);
  const tied = ['--pdeathsig', 'KILL', liqoctl, ...moveArguments('diary', provider)];
  const liqo = spawn('setpriv', tied, { stdio: 'ignore' });
  const end = once(liqo, 'exit');
  await eventually(
    'liqoctl has made a Job that restores its copy',
    async () => {
      const jobs = await kubectl(consumer, '-n', shop, 'get', 'jobs', '-o', 'name');
      if (jobs.includes('liqo-restorer-')) return true;
      throw new Error(jobs);
    },
    { ...patience, withinMs: 300_000 },
  );
  liqo.kill('SIGINT');
  const [code] = (await end) as [number];
  expect(code).not.toBe(0);
  expect(await uidOf()).not.toBe(before);
  await nothingOfLiqoctl();
  const [record] = await records(consumer, 'diary', 1);

  await kubectl(consumer, 'uncordon', provider);
  await kubectl(consumer, '-n', shop, 'delete', 'job', '--all', '--wait');
  await kubectl(consumer, '-n', shop, 'delete', 'pvc', 'diary', '--wait');
  const here = ['--kubeconfig', stage.world.cluster(consumer).kubeconfigPath];
  await stage.world.mustIsthmus('volume', 'adopt', record?.metadata.name ?? '', '--namespace', shop, ...here);
  // In a namespace of this cluster the command makes the claim, of the class that the volume is of.
  expect(await read('reader', 'diary')).toEqual({ text: 'dear diary\n', node: genuine });
});
