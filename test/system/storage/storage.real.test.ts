/** Volumes of two real clusters, on real kubelets, with a CSI driver in each: made where pods run, found again, and kept when everything else ends. */
import path from 'node:path';
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest';
import {
  coreEvents,
  csiStorageCapacities,
  namespaces,
  type PersistentVolumeClaim,
  persistentVolumeClaims,
  persistentVolumes,
  pods,
} from '#shared/domain/core-kinds.ts';
import type { KubeObject } from '#shared/domain/kube-object.ts';
import { parseQuantity } from '#shared/domain/quantity.ts';
import { storageNamespace } from '#shared/domain/storage-keys.ts';
import { retainedVolumes } from '#shared/schema/isthmus/retained-volume.ts';
import { eventually } from '#test/harness/eventually.ts';
import { inOrder } from '#test/harness/in-order.ts';
import { removeProductClusters } from '#test/harness/product-clusters.ts';
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
import { describeMoves } from './moves.ts';
import {
  claim,
  genuine,
  on,
  openStorageStage,
  readClaim,
  reader,
  shop,
  shopThere,
  statefulSet,
  writer,
} from './storage-stage.ts';

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

async function ready(name: string): Promise<string | undefined> {
  return (await stage.podThat(consumer, [shop, name], 'is ready', isReady)).spec?.nodeName;
}
const kubectl = (cluster: ClusterName, ...args: readonly string[]): Promise<string> =>
  stage.world.cluster(cluster).kubectl(...args);
const removePod = (name: string): Promise<string> => kubectl(consumer, '-n', shop, 'delete', 'pod', name, '--wait');
const read = (name: string, claimName: string, more?: object, at?: readonly [ClusterName, string]) =>
  readClaim(stage, name, claimName, more, at);
const claimAt = (cluster: ClusterName, namespace: string, name: string): Promise<PersistentVolumeClaim | undefined> =>
  stage.api(cluster).get(persistentVolumeClaims, { namespace, name });
const bound = (cluster: ClusterName, namespace: string, name: string): Promise<PersistentVolumeClaim> =>
  eventually(
    `claim ${namespace}/${name} of ${cluster} is Bound`,
    async () => {
      const found = await claimAt(cluster, namespace, name);
      if (found?.status?.phase === 'Bound') return found;
      throw new Error(JSON.stringify(found?.status ?? 'absent'));
    },
    patience,
  );
const volumeTool = (...args: readonly string[]): Promise<string> =>
  stage.world.mustIsthmus('volume', ...args, '--kubeconfig', stage.world.cluster(provider).kubeconfigPath);

/** The one record at the provider of this claim. */
const retained = (name: string) =>
  eventually(
    `a RetainedVolume of claim ${name}`,
    async () => {
      const all = await stage.api(provider).list(retainedVolumes);
      const found = all.find(({ spec }) => spec.claim?.namespace === shop && spec.claim.name === name);
      if (found) return found;
      throw new Error(JSON.stringify(all.map(({ spec, status }) => ({ spec, status }))));
    },
    patience,
  );

describe('a claim of class liqo whose first pod runs on a node of this cluster', () => {
  test('B108 has its volume in this cluster, and the next pod reads what the first wrote', async () => {
    await stage.apply(consumer, claim('near'), writer('near-writer', 'near', 'written at home', on(genuine)));
    expect(await ready('near-writer')).toBe(genuine);
    const { metadata, spec } = await bound(consumer, shop, 'near');
    const real = await claimAt(consumer, storageNamespace, metadata.uid ?? '');
    expect(real?.spec?.storageClassName).toBe('loop');
    const volume = await stage.api(consumer).get(persistentVolumes, { name: spec?.volumeName ?? '' });
    expect(volume?.spec?.csi?.driver).toBe('loop.isthmus.test');
    await removePod('near-writer');
    expect(await read('near-reader', 'near')).toEqual({ text: 'written at home\n', node: genuine });
  });

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

describe('a claim of class liqo whose first pod runs at the provider', () => {
  test('B106 has its volume there, with the bytes that the pod wrote', async () => {
    await stage.apply(consumer, claim('far'), writer('far-writer', 'far', 'written next door', on(provider)));
    expect(await ready('far-writer')).toBe(provider);
    await bound(consumer, shop, 'far');
    const real = await bound(provider, shopThere, 'far');
    expect(real.spec?.storageClassName).toBe('loop');
    expect(await kubectl(provider, '-n', shopThere, 'exec', 'far-writer', '--', 'cat', '/data/notes')).toBe(
      'written next door\n',
    );
    const events = await stage.api(consumer).list(coreEvents, { namespace: shop });
    const warnings = events.filter(({ type, involvedObject }) => type === 'Warning' && involvedObject.name === 'far');
    expect(warnings.map(({ reason, message }) => `${reason}: ${message}`)).toEqual([]);
  });

  test('grows at the provider, and says so here', async () => {
    await removePod('far-writer');
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

  test('keeps later pods at the provider, where they read those bytes', async () => {
    expect(await read('far-reader', 'far')).toEqual({ text: 'written next door\n', node: provider });
    await stage.apply(consumer, reader(shop, 'far-stranger', 'far', on(genuine)));
    const { status } = await stage.podThat(consumer, [shop, 'far-stranger'], 'cannot be placed', (found) =>
      Boolean(found.status?.conditions?.some(({ reason }) => reason === 'Unschedulable')),
    );
    expect(status?.conditions?.map(({ message }) => message).join()).toMatch(/volume node affinity|didn't match/);
    await removePod('far-stranger');
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

describeMoves(() => stage, { everyEnd: false });

describe('what a volume at the provider holds', () => {
  const listed = /rome +shop\/far +64Mi? +loop +Kept/;

  test('is kept when the peering ends, with its size, its owner and a date', async () => {
    const ended = await stage.world.isthmus('unpeer', consumer, provider, '--wait');
    expect(ended.code, reported(ended)).toBe(0);
    const { spec } = await retained('far');
    expect(spec).toMatchObject({ consumer, size: '64Mi', remoteClaim: { namespace: shopThere, name: 'far' } });
    expect(Date.parse(spec.expiresAt) - Date.parse(spec.keptSince)).toBe(30 * 86_400_000);
    expect(await volumeTool('list')).toMatch(listed);
    expect(await stage.api(provider).get(namespaces, { name: shopThere })).toBeUndefined();
    const said = await stage.api(consumer).list(csiStorageCapacities, { namespace: storageNamespace });
    expect(said.map(({ nodeTopology }) => nodeTopology?.matchLabels ?? 'of this cluster')).toEqual(['of this cluster']);
  });

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

  test('is in a claim of the provider after it was adopted there', async () => {
    await kubectl(provider, 'create', 'namespace', 'rescue');
    const { metadata } = await retained('far');
    await volumeTool('adopt', metadata.name, '--namespace', 'rescue', '--claim', 'saved');
    expect((await read('rescuer', 'saved', {}, [provider, 'rescue'])).text).toBe('written next door\n');
    expect(await volumeTool('list')).not.toContain('shop/far');
  });

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
