/**
 * A volume that goes from one provider to another: three real clusters, of which the consumer has neither the volume nor the pod. Its pods that copy
 * speak with each other through the links of both. `test/orderings/storage/moves.test.ts` has the same in memory, with agents that die at every write.
 */
import path from 'node:path';
import { afterAll, beforeAll, expect, test, vi } from 'vitest';
import { persistentVolumeClaims, persistentVolumes } from '#shared/domain/core-kinds.ts';
import { openProductClusters, type ProductClusters, removeProductClusters } from '#test/harness/product-clusters.ts';
import { run } from '#test/harness/program.ts';
import { repositoryRoot } from '#test/testbed/repository-root.ts';
import { consumer, createStage, isReady, provider, reported, type Stage } from '../whole-clusters/stage.ts';
import { container, pod } from '../whole-clusters/workloads.ts';
import { claim, genuine, on, shop, statefulSet, writer } from './storage-stage.ts';

const place = { root: repositoryRoot, dir: path.join(repositoryRoot, '.build', 'storage-between-providers') };
const other = 'genoa';
const name = 'data-ledger-0';
vi.setConfig({ testTimeout: 400_000, hookTimeout: 180_000 });
let world: ProductClusters;
let stage: Stage;

beforeAll(async () => {
  await removeProductClusters(place);
  const clusters = [consumer, provider, other].map((cluster) => ({ name: cluster, storage: true }));
  world = await openProductClusters({ ...place, clusters, brokerPort: 7692 });
  for (const cluster of clusters) await world.join(cluster.name);
  stage = await createStage(world);
  for (const lender of [provider, other]) {
    const policy = {
      apiVersion: 'isthmus.dev/v1alpha1',
      kind: 'PeeringPolicy',
      metadata: { name: 'storage' },
      spec: { asProvider: { storageClasses: ['loop'] } },
    };
    const args = [`--kubeconfig=${world.cluster(lender).kubeconfigPath}`, 'apply', '-f', '-'];
    const ended = await run(path.join(world.bed.dir, 'kubectl'), args, {
      timeoutMs: 60_000,
      input: JSON.stringify(policy),
    });
    expect(ended.code, reported(ended)).toBe(0);
    await world.mustIsthmus('peer', consumer, lender, '--cpu', '2', '--memory', '2Gi', '--pods', '20', '--wait');
  }
  await stage.createNamespace(shop);
  await stage.mustOffload(shop, '--strategy', 'LocalAndRemote', '--mapping', 'DefaultName');
}, 900_000);
afterAll(() => removeProductClusters(place), 180_000);

const isthmus = (...args: readonly string[]): Promise<string> =>
  world.mustIsthmus(...args, '--kubeconfig', world.cluster(consumer).kubeconfigPath);
const handle = async (): Promise<string | undefined> => {
  const api = stage.api(consumer);
  const bound = await api.get(persistentVolumeClaims, { namespace: shop, name });
  return (await api.get(persistentVolumes, { name: bound?.spec?.volumeName ?? '' }))?.spec?.csi?.volumeHandle;
};
const onNode = (node: string, podName = 'ledger-0') =>
  stage.podThat(
    consumer,
    [shop, podName],
    `is ready on ${node}`,
    (found) => isReady(found) && found.spec?.nodeName === node,
  );

test('goes there with all that was written, and back with what was written since', async () => {
  await stage.apply(consumer, claim(name), writer('first', name, 'written at the first provider', on(provider)));
  await stage.podThat(consumer, [shop, 'first'], 'is ready', isReady);
  await stage.kubectl(consumer, ['-n', shop, 'delete', 'pod', 'first', '--wait']);
  await stage.apply(consumer, statefulSet('ledger', { replicas: 1, file: '/data/starts' }));
  await onNode(provider);
  expect(await isthmus('move', 'volume', name, '-n', shop, '--to', other)).toMatch(
    /is in cluster genoa: \d+ files, \S+, with equal checksums; pods waited \d+ s/,
  );
  await onNode(other);
  expect(await handle()).toMatch(/^genoa\/shop-rome\//);
  const read = async (file: string): Promise<string> =>
    (await stage.kubectl(consumer, ['-n', shop, 'exec', 'ledger-0', '--', 'cat', file])).stdout;
  expect(await read('/data/notes')).toBe('written at the first provider\n');
  const wrote = await stage.kubectl(consumer, [
    ...['-n', shop, 'exec', 'ledger-0', '--', 'workload', 'write', '/data/second', 'written at the second'],
  ]);
  expect(wrote.code, reported(wrote)).toBe(0);
  await isthmus('move', 'volume', name, '-n', shop, 'undo', '--copy-back');
  await onNode(provider);
  expect([await read('/data/notes'), await read('/data/second')]).toEqual([
    'written at the first provider\n',
    'written at the second\n',
  ]);
  expect(await handle()).toMatch(/^milan\/shop-rome\//);
});

test('a block device goes to another provider, and then home, with its bytes', async () => {
  const raw = 'data-raw-0';
  const resources = { requests: { storage: '16Mi' } };
  const device = { volumeDevices: [{ name: 'data', devicePath: '/dev/data' }] };
  const volumes = [{ name: 'data', persistentVolumeClaim: { claimName: raw } }];
  const writes = container(['write', '-hold', '/dev/data', 'written to the device'], device);
  await stage.apply(
    consumer,
    claim(raw, {}, { volumeMode: 'Block', resources }),
    pod(shop, 'raw-first', [writes], { volumes, ...on(provider) }),
  );
  await stage.podThat(consumer, [shop, 'raw-first'], 'is ready', isReady);
  await stage.kubectl(consumer, ['-n', shop, 'delete', 'pod', 'raw-first', '--wait']);
  await stage.apply(
    consumer,
    statefulSet('raw', { replicas: 1, podSpec: { containers: [container(['pause'], device)] } }),
  );
  await onNode(provider, 'raw-0');
  for (const [target, node] of [
    [other, other],
    ['local', genuine],
  ] as const) {
    expect(await isthmus('move', 'volume', raw, '-n', shop, '--to', target)).toMatch(/with equal checksums/);
    await onNode(node, 'raw-0');
    const read = await stage.kubectl(consumer, ['-n', shop, 'exec', 'raw-0', '--', 'cat', '/dev/data']);
    expect([read.stdout.length, read.stdout.slice(0, 22)]).toEqual([16 * 1_048_576, 'written to the device\n']);
    await isthmus('move', 'volume', raw, '-n', shop, 'confirm');
  }
});
