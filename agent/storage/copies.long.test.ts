/** Claims that are to begin as copies of others, on two API servers: made beside their sources, sent there, and waited for. */
import { afterAll, beforeAll, expect, test } from 'vitest';
import { type PersistentVolumeClaim, persistentVolumeClaims } from '#shared/domain/core-kinds.ts';
import { eventually } from '#test/harness/eventually.ts';
import { inOrder } from '#test/harness/in-order.ts';
import { createVirtualNode, type OffloadingClusters } from '#test/harness/offloading-clusters.ts';
import { selectedNode, startStorageAgent, storageClaims } from '#test/harness/storage-claims.ts';
import { addVirtualNode, startStorageClusters } from '#test/harness/storage-clusters.ts';
import type { VolumeProvisioner } from '#test/harness/volume-provisioner.ts';

const end = new AbortController();
let world: OffloadingClusters;
let running: Promise<unknown>;
let here: VolumeProvisioner;
let there: VolumeProvisioner;

// In this order: the first test makes the sources, and the last one takes them away.
inOrder('file');
beforeAll(async () => {
  ({ world, here, there } = await startStorageClusters());
  await addVirtualNode(world);
  await createVirtualNode(world, 'vn1', { storageClasses: [{ storageClassName: 'fast', default: true }] });
  running = (await startStorageAgent(world, {}, end.signal)).ended;
}, 900_000);
afterAll(async () => {
  await Promise.all([here?.stop(), there?.stop()]);
  end.abort();
  await running;
  await world?.stop();
});

const { makeClaim, claim, remote, bound, removeClaim, event } = storageClaims(() => world);

/** No real claim of this one, in either cluster. */
async function expectNothingFor(name: string): Promise<void> {
  const { uid = '' } = (await claim(name))?.metadata ?? {};
  const real = { namespace: 'liqo-storage', name: uid };
  expect(await world.consumer.api.get(persistentVolumeClaims, real)).toBeUndefined();
  expect(await remote(name)).toBeUndefined();
}

const copyOf = (name: string) => ({ dataSource: { kind: 'PersistentVolumeClaim', name } });

test('a claim that is to be a copy of another one begins as a copy of the real claim of that, in the cluster that has it', async () => {
  for (const { node, provisioner } of [
    { node: 'worker', provisioner: here },
    { node: 'vn1', provisioner: there },
  ]) {
    const [from, to] = [`source-${node}`, `copy-${node}`];
    await makeClaim(from, node);
    const source = await bound(from);
    await makeClaim(to, node, copyOf(from));
    const made = await bound(to);
    const realOf = async (found: PersistentVolumeClaim): Promise<PersistentVolumeClaim | undefined> =>
      node === 'vn1'
        ? remote(found.metadata.name)
        : world.consumer.api.get(persistentVolumeClaims, {
            namespace: 'liqo-storage',
            name: found.metadata.uid ?? '',
          });
    const volumes = await eventually('volumes of both real claims', async () => {
      const [original, copy] = [await realOf(source), await realOf(made)];
      if (!original?.spec?.volumeName || !copy?.spec?.volumeName) return undefined;
      expect(copy.spec.dataSource).toMatchObject({ kind: 'PersistentVolumeClaim', name: original.metadata.name });
      return { original: original.spec.volumeName, copy: copy.spec.volumeName };
    });
    expect(provisioner.copies.get(volumes.copy)).toBe(volumes.original);
    await removeClaim(to);
  }
});

test('a copy that the scheduler sends elsewhere than its source is not made there: an event names both places, and the scheduler chooses again', async () => {
  for (const { name, node, from, says } of [
    { name: 'astray', node: 'worker', from: 'source-vn1', says: /is at cluster prov, and node worker, .* is in this/ },
    {
      name: 'afar',
      node: 'vn1',
      from: 'source-worker',
      says: /is in this cluster, and node vn1, .* is at cluster prov/,
    },
  ]) {
    await makeClaim(name, node, copyOf(from));
    const { type, message } = await event(name, 'DataSourceElsewhere');
    expect([type, message]).toEqual(['Warning', expect.stringMatching(says)]);
    await eventually(
      'no node selected',
      async () => (await claim(name))?.metadata.annotations?.[selectedNode] === undefined,
    );
    await expectNothingFor(name);
    const annotations = { [selectedNode]: node === 'vn1' ? 'worker' : 'vn1' };
    await world.consumer.api.mergePatch(
      persistentVolumeClaims,
      { namespace: 'shop', name },
      { metadata: { annotations } },
    );
    await bound(name);
    await removeClaim(name);
  }
});

test('a copy waits for its source, and says for what', async () => {
  await makeClaim('early', 'vn1', copyOf('late'));
  expect((await event('early', 'WaitingForVolume')).message).toMatch(
    /waiting for claim shop\/late, of which it is to be a copy \(spec.dataSource\), to be made/,
  );
  expect(await remote('early')).toBeUndefined();
  await makeClaim('late', 'vn1');
  await bound('early');
  for (const name of ['early', 'late']) await removeClaim(name);
});

test('a copy that is smaller than its source, or of another mode, is refused by field and value, and nothing is made', async () => {
  const small = { resources: { requests: { storage: '1Mi' } } };
  for (const [name, node, spec, says] of [
    ['small', 'worker', { ...copyOf('source-worker'), ...small }, 'storage is 1Mi: accepted is 1Gi or more'],
    ['device', 'vn1', { ...copyOf('source-vn1'), volumeMode: 'Block' }, 'volumeMode is Block: accepted is Filesystem'],
  ] as const) {
    await makeClaim(name, node, spec);
    const { type, message } = await event(name, 'ProvisioningFailed');
    expect([type, message]).toEqual(['Warning', expect.stringContaining(says)]);
    await expectNothingFor(name);
    await removeClaim(name);
  }
  for (const name of ['source-worker', 'source-vn1']) await removeClaim(name);
});
