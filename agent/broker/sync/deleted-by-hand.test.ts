/** Objects of a peering that a user of the cluster deletes: which of them ends it, and what of it is made again. */
import { describe, expect, test } from 'vitest';
import type { DesiredSet, KubeManifest } from '#shared/schema/protocol/agent-protocol.ts';
import { answer, manifests, namespace, rememberingCluster, set, start } from '../testing/remembering-cluster.ts';

describe('a peering whose slice a user of the cluster deletes', () => {
  const slice = ['ResourceSlice', `${namespace}/milan`] as const;

  test('is ended there: no object is made again, the report says so, and its end clears the rest', async () => {
    const { sets, settle, names, deleteByHand } = start();
    sets.accept(answer(1, set('pe_1', 1, 'present')));
    await settle();
    expect(sets.observed()[0]?.ended).toBeUndefined();
    const gone = deleteByHand(...slice);
    await settle();
    gone();
    await settle();
    expect(names()).toEqual([`Namespace|${namespace}`]);
    expect(sets.observed()).toMatchObject([{ peering: 'pe_1', ended: true }]);
    sets.accept(answer(2, set('pe_1', 2, 'absent')));
    await settle();
    expect(names()).toEqual([]);
  });

  test('stays ended through a restart of the agent, and the next peering of the pair starts afresh', async () => {
    const world = rememberingCluster();
    const before = start(world);
    before.sets.accept(answer(1, set('pe_1', 1, 'present')));
    await before.settle();
    const gone = world.deleteByHand(...slice);
    await before.settle();
    gone();
    const after = start(world);
    after.sets.accept({ ...answer(1, set('pe_1', 1, 'present')), full: true });
    await after.settle();
    expect(world.names()).toEqual([`Namespace|${namespace}`]);
    expect(after.sets.observed()[0]?.ended).toBe(true);
    after.sets.accept(answer(3, set('pe_1', 2, 'absent'), set('pe_2', 3, 'present')));
    await after.settle();
    expect(world.names()).toHaveLength(2);
    expect(after.sets.observed().find(({ peering }) => peering === 'pe_2')?.ended).toBeUndefined();
  });

  test('is not taken for ended when an earlier peering of the pair is still going', async () => {
    const { sets, settle, names, deleteByHand } = start();
    sets.accept(answer(1, set('pe_1', 1, 'present')));
    await settle();
    const gone = deleteByHand(...slice);
    sets.accept(answer(3, set('pe_1', 2, 'absent'), set('pe_2', 3, 'present')));
    await settle();
    gone();
    await settle();
    expect(names()).toHaveLength(2);
    expect(sets.observed().every(({ ended }) => !ended)).toBe(true);
  });
});

describe('a peering whose Identity, which no finalizer holds, a user of the cluster deletes', () => {
  const identity: KubeManifest = {
    apiVersion: 'authentication.liqo.io/v1beta1',
    kind: 'Identity',
    metadata: { name: 'controlplane-milan', namespace, labels: { 'liqo.io/remote-cluster-id': 'milan' } },
    spec: { clusterID: 'milan', type: 'ControlPlane' },
  };
  const withIdentity = (revision: number): DesiredSet => ({
    ...set('pe_1', revision, 'present'),
    objects: [...manifests, identity],
  });

  test('is ended there, though nothing shows the deletion but that it is gone', async () => {
    const { sets, settle, names, deleteByHand } = start();
    sets.accept(answer(1, withIdentity(1)));
    await settle();
    expect(names()).toHaveLength(3);
    deleteByHand('Identity', `${namespace}/controlplane-milan`)();
    await settle();
    expect(sets.observed()).toMatchObject([{ peering: 'pe_1', ended: true }]);
    expect(names()).not.toContain(`Identity|${namespace}/controlplane-milan`);
  });

  test('goes on when the broker wants the Identity no longer', async () => {
    const { sets, settle } = start();
    sets.accept(answer(1, withIdentity(1)));
    await settle();
    sets.accept(answer(2, set('pe_1', 2, 'present')));
    await settle();
    expect(sets.observed()[0]?.ended).toBeUndefined();
  });

  test('goes on, and is made again, when the cluster has lost its namespace, too', async () => {
    const { sets, settle, names, deleteByHand } = start();
    sets.accept(answer(1, withIdentity(1)));
    await settle();
    for (const name of names()) deleteByHand(...(name.split('|') as [string, string]))();
    await settle();
    expect(sets.observed()[0]?.ended).toBeUndefined();
    expect(names()).toHaveLength(3);
  });

  test('goes on when it is gone from a cache alone', async () => {
    const world = rememberingCluster();
    let blind = false;
    const all = world.caches.all.map((cache) => ({
      ...cache,
      list: () => (blind && cache.type.kind === 'Identity' ? [] : cache.list()),
    }));
    const { sets, settle } = start({ ...world, caches: { all: all as typeof world.caches.all } });
    sets.accept(answer(1, withIdentity(1)));
    await settle();
    blind = true;
    await settle();
    expect(sets.observed()[0]?.ended).toBeUndefined();
  });
});
