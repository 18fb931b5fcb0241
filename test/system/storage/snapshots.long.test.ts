/**
 * VolumeSnapshots of volumes in two real clusters, taken by Kubernetes' own snapshot controller and csi-snapshotter, with the bytes that their restores
 * have. `agent/storage/snapshots` and `test/orderings/storage/snapshots.test.ts` have every order of events, with both of these played.
 */
import path from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { afterAll, beforeAll, expect, test, vi } from 'vitest';
import { persistentVolumeClaims } from '#shared/domain/core-kinds.ts';
import { guestVolume } from '#shared/domain/guest-volume-keys.ts';
import type { KubeObject } from '#shared/domain/kube-object.ts';
import {
  handleOf,
  snapshotGroup,
  type VolumeSnapshot,
  type VolumeSnapshotContent,
  volumeSnapshotContents,
  volumeSnapshots,
} from '#shared/domain/snapshot-kinds.ts';
import { storageNamespace } from '#shared/domain/storage-keys.ts';
import { eventually } from '#test/harness/eventually.ts';
import { inOrder } from '#test/harness/in-order.ts';
import { removeProductClusters } from '#test/harness/product-clusters.ts';
import type { TiedProgram } from '#test/harness/program.ts';
import { startSnapshotters } from '#test/harness/snapshotters.ts';
import { volumesFolder } from '#test/testbed/loop-devices.ts';
import { inNode } from '#test/testbed/node-config.ts';
import { repositoryRoot } from '#test/testbed/repository-root.ts';
import { slotOf } from '#test/testbed/slots.ts';
import {
  type ClusterName,
  clusterNames,
  consumer,
  isReady,
  patience,
  provider,
  reported,
  type Stage,
} from '../whole-clusters/stage.ts';
import { claim, genuine, on, openStorageStage, readClaim, shop, shopThere, writer } from './storage-stage.ts';

const place = { root: repositoryRoot, dir: path.join(repositoryRoot, '.build', 'storage-snapshots') };
vi.setConfig({ testTimeout: 240_000, hookTimeout: 180_000 });
let snapshotters: TiedProgram | undefined;
let stage: Stage;
let slot: number;

beforeAll(async () => {
  await removeProductClusters(place);
  stage = await openStorageStage({
    ...place,
    brokerPort: 7698,
    cluster: { restartDelaySeconds: 1 },
    async before({ bed }) {
      slot = slotOf(bed.dir) ?? Number.NaN;
      snapshotters = await startSnapshotters(bed);
    },
  });
}, 900_000);
afterAll(async () => {
  await snapshotters?.stop();
  await removeProductClusters(place);
}, 180_000);
inOrder('file');

const kubectl = (cluster: ClusterName, ...args: readonly string[]): Promise<string> =>
  stage.world.cluster(cluster).kubectl(...args);

const snapshotOf = (name: string, claimName: string): KubeObject =>
  ({
    apiVersion: `${snapshotGroup}/v1`,
    kind: 'VolumeSnapshot',
    metadata: { namespace: shop, name },
    spec: { source: { persistentVolumeClaimName: claimName } },
  }) as KubeObject;
const of = (name: string) => ({ dataSource: { apiGroup: snapshotGroup, kind: 'VolumeSnapshot', name } });

const ready = (name: string): Promise<VolumeSnapshot> =>
  eventually(
    `VolumeSnapshot ${name} is ready to use`,
    async () => {
      const now = await stage.api(consumer).get(volumeSnapshots, { namespace: shop, name });
      if (now?.status?.readyToUse) return now;
      throw new Error(JSON.stringify(now?.status ?? 'absent'));
    },
    // A provider's ResourceQuota lets none in until kube-controller-manager counts them.
    { ...patience, withinMs: 200_000 },
  );

/** Files of snapshots that the driver has in the nodes of a cluster. */
async function taken(cluster: ClusterName): Promise<readonly string[]> {
  const lists = await Promise.all(
    stage.world
      .cluster(cluster)
      .nodes.map(({ name, exec }) => exec('ls', [`${inNode.node}/${volumesFolder(slot, name)}`])),
  );
  return lists.flatMap((text) => text.split('\n')).filter((name) => name.endsWith('.snap'));
}

const read = (name: string, claimName: string) => readClaim(stage, name, claimName);
const append = (name: string, text: string) =>
  kubectl(consumer, '-n', shop, 'exec', name, '--', 'workload', 'write', '/data/notes', text);

test('a snapshot of a volume at the provider is taken there, and a claim that begins as it has what was written before, and none of what was written later', async () => {
  await stage.apply(consumer, claim('far'), writer('far-author', 'far', 'monday', on(provider)));
  await stage.podThat(consumer, [shop, 'far-author'], 'is ready', isReady);
  await stage.apply(consumer, snapshotOf('monday', 'far'));
  const { metadata, status } = await ready('monday');
  expect(status?.restoreSize).toBe('32Mi');
  const content = await stage
    .api(consumer)
    .get(volumeSnapshotContents, { name: status?.boundVolumeSnapshotContentName ?? '' });
  expect(content && handleOf(content)).toBe(`${provider}/${shopThere}/snapshot-${metadata.uid}`);
  expect([(await taken(provider)).length, (await taken(consumer)).length]).toEqual([1, 0]);

  await append('far-author', 'tuesday');
  await stage.apply(consumer, claim('far-restored', {}, of('monday')));
  expect(await read('far-reader', 'far-restored')).toEqual({ text: 'monday\n', node: provider });
  const real = await stage.api(provider).get(persistentVolumeClaims, { namespace: shopThere, name: 'far-restored' });
  expect(real?.spec?.dataSource).toMatchObject({ kind: 'VolumeSnapshot', name: `snapshot-${metadata.uid}` });
});

test('a snapshot of a volume of this cluster is taken by its own driver and lent to what begins as it, and the loan ends', async () => {
  await stage.apply(consumer, claim('near'), writer('near-author', 'near', 'at home', on(genuine)));
  await stage.podThat(consumer, [shop, 'near-author'], 'is ready', isReady);
  await stage.apply(consumer, snapshotOf('at-home', 'near'));
  await ready('at-home');
  expect((await taken(consumer)).length).toBe(1);

  await append('near-author', 'later');
  await stage.apply(consumer, claim('near-restored', {}, of('at-home')));
  expect(await read('near-reader', 'near-restored')).toEqual({ text: 'at home\n', node: genuine });
  await eventually(
    'the loan has ended',
    async () => {
      const lent = await stage.api(consumer).list(volumeSnapshots, { namespace: storageNamespace });
      const contents = await stage.api(consumer).list(volumeSnapshotContents);
      const left = [...lent, ...contents.filter((one) => one.metadata.name.startsWith('isthmus-import-'))];
      if (left.length > 0) throw new Error(left.map((one) => one.metadata.name).join());
      return true;
    },
    patience,
  );
  expect((await taken(consumer)).length).toBe(1);
});

test('a snapshot outlives the claim that it was taken of', async () => {
  await kubectl(consumer, '-n', shop, 'delete', 'pod', 'far-author', '--wait');
  await kubectl(consumer, '-n', shop, 'delete', 'pvc', 'far', '--wait');
  await eventually(
    'the real claim is gone',
    async () => !(await stage.api(provider).get(persistentVolumeClaims, { namespace: shopThere, name: 'far' })),
    patience,
  );
  await stage.apply(consumer, claim('far-again', {}, of('monday')));
  expect(await read('far-again-reader', 'far-again')).toEqual({ text: 'monday\n', node: provider });
});

test('a snapshot during which the agents of both clusters are killed again and again is taken once', async () => {
  const before = (await taken(provider)).length;
  await stage.apply(consumer, snapshotOf('stormy', 'far-again'));
  for (let kill = 0; kill < 6; kill++) {
    await delay(700);
    const pids = clusterNames.flatMap((name) => stage.world.agentPids(name));
    for (const pid of pids) process.kill(pid, 'SIGKILL');
  }
  await ready('stormy');
  expect((await taken(provider)).length).toBe(before + 1);
  await stage.apply(consumer, claim('far-stormy', {}, of('stormy')));
  expect((await read('stormy-reader', 'far-stormy')).text).toBe('monday\n');
});

test('a VolumeSnapshot that is deleted takes its data at the provider along', async () => {
  const [before, gone] = [await taken(provider), await ready('stormy')];
  const there = { namespace: shopThere, name: `snapshot-${gone.metadata.uid}` };
  expect(await stage.api(provider).get(volumeSnapshots, there)).toBeDefined();
  await kubectl(consumer, '-n', shop, 'delete', 'volumesnapshot', 'stormy', '--wait');
  await eventually(
    'it is gone at the provider, with its file',
    async () =>
      (await stage.api(provider).get(volumeSnapshots, there)) === undefined &&
      (await taken(provider)).length === before.length - 1,
    patience,
  );
});

test('a snapshot whose namespace is no longer offloaded is kept at the provider, until that deletes it', async () => {
  const { metadata } = await ready('monday');
  const kubeconfig = ['--kubeconfig', stage.world.cluster(consumer).kubeconfigPath];
  const ended = await stage.world.isthmus('unoffload', 'namespace', shop, ...kubeconfig);
  expect(ended.code, reported(ended)).toBe(0);
  expect(`${ended.stdout}${ended.stderr}`).toContain('VolumeSnapshot');
  const kept = await eventually(
    'the provider keeps its content',
    async () => {
      const listed = await kubectl(provider, 'get', 'volumesnapshotcontents', '-l', guestVolume.keptFor, '-o', 'json');
      const { items } = JSON.parse(listed) as { items: VolumeSnapshotContent[] };
      return items.find(({ spec }) => spec.volumeSnapshotRef.name === `snapshot-${metadata.uid}`);
    },
    patience,
  );
  expect(kept.metadata.labels?.[guestVolume.keptFor]).toBe(consumer);
  expect((await taken(provider)).length).toBe(1);

  const policy = JSON.stringify({ spec: { deletionPolicy: 'Delete' } });
  const { name } = kept.metadata;
  await kubectl(provider, 'patch', 'volumesnapshotcontent', name, '--type=merge', '-p', policy);
  await kubectl(provider, 'delete', 'volumesnapshotcontent', name, '--wait');
  await eventually('its file is gone', async () => (await taken(provider)).length === 0, patience);
});
