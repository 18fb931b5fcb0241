/** Volumes of two real clusters, on real kubelets, with a CSI driver in each: made where pods run, found again, and kept when everything else ends. */
import path from 'node:path';
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest';
import { csiStorageCapacities, persistentVolumes, pods } from '#shared/domain/core-kinds.ts';
import type { KubeObject } from '#shared/domain/kube-object.ts';
import { parseQuantity } from '#shared/domain/quantity.ts';
import { storageNamespace } from '#shared/domain/storage-keys.ts';
import { retainedVolumes } from '#shared/schema/isthmus/retained-volume.ts';
import { eventually } from '#test/harness/eventually.ts';
import { inOrder } from '#test/harness/in-order.ts';
import { removeProductClusters } from '#test/harness/product-clusters.ts';
import { repositoryRoot } from '#test/testbed/repository-root.ts';
import { consumer, patience, provider, reported, type Stage } from '../whole-clusters/stage.ts';
import { actsOn } from './acts.ts';
import { claim, genuine, on, openStorageStage, shop, shopThere, statefulSet, writer } from './storage-stage.ts';
import { claimHere, claimThere, keptVolume, rescuedVolume } from './walk.ts';

const place = { root: repositoryRoot, dir: path.join(repositoryRoot, '.build', 'storage-under-test') };
/** While writing a test: `ISTHMUS_KEEP_CLUSTERS=1` leaves everything running, and the next run starts from it. */
const keep = process.env.ISTHMUS_KEEP_CLUSTERS === '1';
vi.setConfig({ testTimeout: 240_000, hookTimeout: 180_000 });
let stage: Stage;

beforeAll(async () => {
  if (!keep) await removeProductClusters(place);
  stage = await openStorageStage({ ...place, brokerPort: 7689 });
}, 900_000);
afterAll(async () => {
  if (!keep) await removeProductClusters(place);
}, 180_000);
if (!keep) inOrder('file');

const { ready, kubectl, removePod, read, claimAt, bound, volumeTool, retained } = actsOn(() => stage);

claimHere(() => stage);

describe('a claim whose volume is in this cluster', () => {
  test('goes with its real claim and its volume when it is deleted', async () => {
    const { metadata, spec } = await bound(consumer, shop, 'near');
    await kubectl(consumer, '-n', shop, 'delete', 'pvc', 'near', '--wait');
    await eventually(
      'nothing of the claim is left',
      async () =>
        !(await claimAt(consumer, storageNamespace, metadata.uid ?? '')) &&
        !(await stage.api(consumer).get(persistentVolumes, { name: spec?.volumeName ?? '' })),
      patience,
    );
  });
});

claimThere(() => stage);

describe('a claim whose volume is at the provider', () => {
  test('grows at the provider, and says so here', async () => {
    const patch = JSON.stringify({ spec: { resources: { requests: { storage: '64Mi' } } } });
    await kubectl(consumer, '-n', shop, 'patch', 'pvc', 'far', '-p', patch);
    await eventually(
      'the wait for a pod',
      async () => {
        const { status, spec } = await bound(consumer, shop, 'far');
        const volume = await stage.api(consumer).get(persistentVolumes, { name: spec?.volumeName ?? '' });
        const types = status?.conditions?.map(({ type }) => type).join();
        if (types === 'FileSystemResizePending' && volume?.spec?.capacity?.storage === '64Mi') return true;
        throw new Error(JSON.stringify([status, volume?.spec?.capacity]));
      },
      patience,
    );
    const { node } = await read('far-grower', 'far');
    expect(node).toBe(provider);
    for (const [cluster, namespace] of [[provider, shopThere] as const, [consumer, shop] as const])
      await eventually(
        `claim ${namespace}/far has 64Mi`,
        async () => {
          const { status } = await bound(cluster, namespace, 'far');
          if (status?.capacity?.storage === '64Mi' && !status.conditions?.length) return true;
          throw new Error(JSON.stringify(status));
        },
        patience,
      );
  });

  test('can name a class of the provider that binds at once', async () => {
    await stage.apply(
      consumer,
      claim('now', { 'liqo.io/remote-storage-class': 'loop-now' }),
      writer('now-writer', 'now', 'at once', on(provider)),
    );
    expect(await ready('now-writer')).toBe(provider);
    expect((await bound(provider, shopThere, 'now')).spec?.storageClassName).toBe('loop-now');
    await removePod('now-writer');
  });

  test('is deleted with its data, which the provider does not keep then', async () => {
    const { metadata } = await bound(consumer, shop, 'now');
    const there = (await bound(provider, shopThere, 'now')).spec?.volumeName ?? '';
    await kubectl(consumer, '-n', shop, 'delete', 'pvc', 'now', '--wait');
    await eventually(
      'nothing of the claim is left',
      async () =>
        !(await claimAt(provider, shopThere, 'now')) &&
        !(await stage.api(provider).get(persistentVolumes, { name: there })) &&
        !(await stage.api(consumer).get(persistentVolumes, { name: `pvc-${metadata.uid}` })),
      patience,
    );
    expect(await stage.api(provider).list(retainedVolumes)).toEqual([]);
  });
});

describe('a claim of class isthmus', () => {
  const gibi = 2n ** 30n;
  const roomAt = async (id: string): Promise<bigint | undefined> => {
    const all = await stage.api(consumer).list(csiStorageCapacities, { namespace: storageNamespace });
    const found = all.find(({ nodeTopology }) => nodeTopology?.matchLabels?.['liqo.io/remote-cluster-id'] === id);
    return found && parseQuantity(found.capacity ?? '0') / 1_000_000_000n;
  };
  const roomy = (name: string, storage: string) =>
    claim(name, {}, { storageClassName: 'isthmus', resources: { requests: { storage } } });
  const rather = {
    nodeAffinity: {
      preferredDuringSchedulingIgnoredDuringExecution: [
        {
          weight: 100,
          preference: { matchExpressions: [{ key: 'kubernetes.io/hostname', operator: 'In', values: [provider] }] },
        },
      ],
    },
  };

  test('for which the provider has too little left keeps its pod from there, and the scheduler says why', async () => {
    const before = await eventually('what the provider has left', () => roomAt(provider), patience);
    expect(before).toBeLessThan(4n * gibi);
    await stage.apply(consumer, roomy('grand', '5Gi'), writer('grand-writer', 'grand', 'too much', on(provider)));
    const { status } = await stage.podThat(consumer, [shop, 'grand-writer'], 'cannot be placed', (found) =>
      Boolean(found.status?.conditions?.some(({ message }) => message?.includes('did not have enough free storage'))),
    );
    expect(status?.phase).toBe('Pending');
    await removePod('grand-writer');
    await kubectl(consumer, '-n', shop, 'delete', 'pvc', 'grand', '--wait');
  });

  test('goes where there is room, and what is left there shrinks and grows by it', async () => {
    const before = (await roomAt(provider)) ?? 0n;
    await stage.apply(consumer, roomy('snug', '512Mi'), writer('snug-writer', 'snug', 'there', { affinity: rather }));
    expect(await ready('snug-writer')).toBe(provider);
    // Volumes of earlier tests, of 64Mi at most, may still be given back.
    const room = async (isRight: (left: bigint) => boolean): Promise<true> => {
      const left = (await roomAt(provider)) ?? 0n;
      if (isRight(left)) return true;
      throw new Error(`${left} bytes, before ${before}`);
    };
    await eventually('much less is left', () => room((left) => left < before - gibi / 4n), patience);
    await removePod('snug-writer');
    await kubectl(consumer, '-n', shop, 'delete', 'pvc', 'snug', '--wait');
    await eventually('as much as before is left', () => room((left) => left >= before), patience);
  });

  test('goes into this cluster when only that has room', async () => {
    await stage.apply(consumer, roomy('wide', '5Gi'), writer('wide-writer', 'wide', 'here', { affinity: rather }));
    expect(await ready('wide-writer')).toBe(genuine);
    await removePod('wide-writer');
    await kubectl(consumer, '-n', shop, 'delete', 'pvc', 'wide', '--wait');
  });
});

describe('a generic ephemeral volume of a pod at the provider', () => {
  test('is made there, and goes with its pod on both sides', async () => {
    const spec = (claim('unused') as { spec?: unknown }).spec;
    const volumes = [{ name: 'data', ephemeral: { volumeClaimTemplate: { spec } } }];
    await stage.apply(consumer, writer('brief', 'unused', 'for now', { volumes, ...on(provider) }));
    expect(await ready('brief')).toBe(provider);
    const there = (await bound(provider, shopThere, 'brief-data')).spec?.volumeName ?? '';
    await removePod('brief');
    await eventually(
      'nothing of its claim is left',
      async () =>
        !(await claimAt(consumer, shop, 'brief-data')) &&
        !(await claimAt(provider, shopThere, 'brief-data')) &&
        !(await stage.api(provider).get(persistentVolumes, { name: there })),
      patience,
    );
  });
});

describe('the replicas of a StatefulSet over both clusters', () => {
  const set = (replicas: number): KubeObject => {
    const spread = {
      maxSkew: 1,
      topologyKey: 'kubernetes.io/hostname',
      whenUnsatisfiable: 'DoNotSchedule',
      labelSelector: { matchLabels: { app: 'db' } },
    };
    return statefulSet('db', { replicas, podSpec: { topologySpreadConstraints: [spread] } });
  };
  const replicas = ['db-0', 'db-1'];
  const nodesOf = async (): Promise<(string | undefined)[]> => Promise.all(replicas.map(ready));
  const notes = (): Promise<string[]> =>
    Promise.all(replicas.map((name) => kubectl(consumer, '-n', shop, 'exec', name, '--', 'cat', '/data/notes')));

  test('return to their data after all of them were away', async () => {
    await stage.apply(consumer, set(2));
    const before = await nodesOf();
    expect([...before].sort()).toEqual([provider, genuine].sort());
    await kubectl(consumer, '-n', shop, 'scale', 'statefulset', 'db', '--replicas=0');
    await eventually(
      'no replica is left',
      async () => (await stage.api(consumer).list(pods, { namespace: shop, labelSelector: 'app=db' })).length === 0,
      patience,
    );
    await kubectl(consumer, '-n', shop, 'scale', 'statefulset', 'db', '--replicas=2');
    expect(await nodesOf()).toEqual(before);
    expect(await notes()).toEqual(['a start\na start\n', 'a start\na start\n']);
    await kubectl(consumer, '-n', shop, 'delete', 'statefulset', 'db', '--wait');
    await Promise.all(replicas.map((name) => kubectl(consumer, '-n', shop, 'wait', '--for=delete', `pod/${name}`)));
  });
});

keptVolume(() => stage, { size: '64Mi' });

describe('a volume that its provider keeps', () => {
  const listed = /rome +shop\/far +64Mi? +loop +Kept/;

  test('is had by the next claim of the consumer of that name, once it was adopted for it and both have peered again', async () => {
    await volumeTool('adopt', (await retained('far')).metadata.name);
    await kubectl(consumer, '-n', shop, 'delete', 'pvc', 'far', '--wait');
    await stage.mustPeer();
    await stage.apply(consumer, claim('far', {}, { resources: { requests: { storage: '64Mi' } } }));
    expect(await read('far-again', 'far', on(provider))).toEqual({ text: 'written next door\n', node: provider });
    expect(await volumeTool('list')).not.toContain('shop/far');
  });

  test('is kept when the namespace is no longer offloaded, and the command says so before', async () => {
    const ended = await stage.world.isthmus(
      ...['unoffload', 'namespace', shop, '--kubeconfig', stage.world.cluster(consumer).kubeconfigPath],
    );
    expect(ended.code, reported(ended)).toBe(0);
    expect(`${ended.stdout}${ended.stderr}`).toContain(`${shop}/far, 64Mi, at ${provider}`);
    expect(await volumeTool('list')).toMatch(listed);
  });
});

rescuedVolume(() => stage);

describe('a volume that its provider keeps and that is not wanted', () => {
  test('goes when it is discarded by name', async () => {
    const left = await stage.api(provider).list(retainedVolumes);
    expect(left.map(({ spec }) => spec.claim?.name)).toEqual([expect.stringMatching(/^data-db-/)]);
    const [{ metadata } = { metadata: { name: '' } }] = left;
    expect(await volumeTool('discard', metadata.name)).toMatch(/the data of shop\/data-db-\d of rome is deleted/);
    await eventually(
      'its volume is gone',
      async () => !(await stage.api(provider).get(persistentVolumes, { name: metadata.name })),
      patience,
    );
  });
});
