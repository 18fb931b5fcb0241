/**
 * The requests of liqoctl 1.2.0, in its order, with its polls and assertions, against two installed clusters. Pods and the tunnel are played
 * here; test/system/brokerless has real ones, for in-band, offloaded namespaces, `test network` and the health of all pods. Not covered: `create
 * virtualnode` with a Ready Node; `move volume`; `install`, which drives Helm.
 */
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import * as yaml from 'yaml';
import { isthmus } from '#cli/captured-io.ts';
import { createKubeApi } from '#kube/http/client.ts';
import { connectKubeconfig } from '#kube/http/kubeconfig.ts';
import { namespaces } from '#shared/domain/core-kinds.ts';
import type { KubeObject } from '#shared/domain/kube-object.ts';
import { silentLog } from '#shared/ports/log.ts';
import { systemClock } from '#shared/ports/system-clock.ts';
import { foreignClusters } from '#shared/schema/liqo/foreign-cluster.ts';
import { networkKinds } from '#shared/schema/liqo/network-resources.ts';
import { resourceSlices } from '#shared/schema/liqo/resource-slice.ts';
import { virtualNodes } from '#shared/schema/liqo/virtual-node.ts';
import { eventually } from '#test/harness/eventually.ts';
import { inOrder } from '#test/harness/in-order.ts';
import type { DeclaredCluster } from '#test/system/declarative/cluster.ts';
import { applyAll } from '#test/system/declarative/orders.ts';
import { getKubeconfig } from './liqoctl/authenticate.ts';
import { checklist } from './liqoctl/checklist.ts';
import { info, infoPeer, version } from './liqoctl/info.ts';
import { forceUnpeer, peer, setTenantCondition, unpeer } from './liqoctl/peer.ts';
import type { Target } from './liqoctl/requests.ts';
import { byHand } from './scenarios/by-hand.ts';
import { peeringUsers } from './scenarios/peering-user.ts';
import { openStage, type Stage } from './stage.ts';

let stage: Stage;
const [rome, milan] = [() => stage.rome, () => stage.milan];
const nodePort = { serviceType: 'NodePort', resources: { cpu: '2' } } as const;
/** Of any single wait, most of it the polls of liqoctl itself. */
const mostMs = 30_000;
const target = (cluster: DeclaredCluster): Target => stage.target(cluster);

const gatewayAtMilan = async () => (await milan().api.list(networkKinds.gatewayServers))[0];

// In this order: each test finds what the ones before it left.
inOrder('file');
beforeAll(async () => {
  stage = await openStage();
}, 900_000);
afterAll(async () => await stage?.close());

describe('liqoctl', () => {
  test.each(checklist)('finds $what ($by)', async ({ check }) => {
    for (const cluster of [rome(), milan()]) await check(target(cluster));
  });

  test('info finds the cluster, its version and its ranges', async () => {
    const { local, network, peerings } = await info(target(rome()));
    expect(local).toMatchObject({ clusterID: 'rome', version: '1.2.0', APIServerAddr: rome().server.url });
    expect(network).toEqual({
      podCIDRs: ['10.200.0.0/16'],
      serviceCIDR: '10.96.0.0/16',
      externalCIDR: '10.70.0.0/16',
      internalCIDR: '10.80.0.0/16',
    });
    expect(peerings).toEqual([]);
    expect(await version(target(rome()))).toBe('1.2.0');
  });

  test('peer connects, authenticates and asks for resources; each wait ends early', async () => {
    const waited = await peer(stage.atItsPace(rome()), stage.atItsPace(milan()), nodePort);
    expect(waited.filter(({ ms }) => ms > mostMs)).toEqual([]);
    await eventually('the VirtualNode', () =>
      rome().api.get(virtualNodes, { namespace: 'liqo-tenant-milan', name: 'milan' }),
    );
  }, 240_000);

  test('peer again changes the resources, and nothing else', async () => {
    const before = await gatewayAtMilan();
    await peer(target(rome()), target(milan()), { ...nodePort, resources: { cpu: '3' } });
    await eventually('the new grant', async () => {
      const slice = await rome().api.get(resourceSlices, { namespace: 'liqo-tenant-milan', name: 'milan' });
      return slice?.status?.resources?.cpu === '3';
    });
    const { uid, generation } = (await gatewayAtMilan())?.metadata ?? {};
    expect([uid, generation]).toEqual([before?.metadata.uid, before?.metadata.generation]);
  }, 240_000);

  test('peer again with another node port recreates the server, and the link comes up with it', async () => {
    const before = await gatewayAtMilan();
    const again = { ...nodePort, nodePort: 31_777, resources: { cpu: '3' } };
    await peer(target(rome()), target(milan()), again);
    const after = await gatewayAtMilan();
    expect(after?.metadata.uid).not.toBe(before?.metadata.uid);
    expect(after?.status?.endpoint?.port).toBe(31_777);
    // What belonged to the one that is gone has been taken away by now, and nothing of the new one with it.
    await eventually('keys and link of the new one alone', async () => {
      for (const [{ api }, type] of [
        [milan(), networkKinds.gatewayServers],
        [rome(), networkKinds.gatewayClients],
      ] as const) {
        const [gateway] = await api.list(type as typeof networkKinds.gatewayServers);
        const [key] = await api.list(networkKinds.publicKeys);
        expect(key?.metadata.ownerReferences?.map(({ uid }) => uid)).toEqual([gateway?.metadata.uid]);
        const links = await api.list(networkKinds.connections);
        expect(links.map(({ status }) => status?.value)).toEqual(['Connected']);
      }
      return true;
    });
    expect((await rome().api.list(networkKinds.gatewayClients))[0]?.spec.endpoint?.port).toBe(31_777);
  }, 240_000);

  test('info peer shows both sides of it', async () => {
    await eventually('both summaries', async () => {
      const [consumer, provider] = [await infoPeer(target(rome()), 'milan'), await infoPeer(target(milan()), 'rome')];
      expect(consumer).toMatchObject({
        warnings: [],
        info: { clusterID: 'milan', role: 'Provider' },
        network: { status: 'Healthy', gateway: { role: 'Server', both: 1, address: [milan().nodeAddress] } },
        authentication: {
          status: 'Healthy',
          APIServerAddr: milan().server.url,
          resourceSlices: [{ name: 'milan', action: 'Consuming', accepted: true }],
        },
        offloading: {
          virtualNodes: [{ name: 'milan', secret: 'kubeconfig-resourceslice-milan', resourceSlice: 'milan' }],
        },
      });
      expect(provider).toMatchObject({
        warnings: [],
        info: { clusterID: 'rome', role: 'Consumer' },
        network: { status: 'Healthy', gateway: { role: 'Client', both: 1 } },
        authentication: { resourceSlices: [{ action: 'Providing', accepted: true }] },
      });
      return true;
    });
    // Both clusters have the same ranges: each sees the other's elsewhere.
    const { remote, remapped } = (await infoPeer(target(rome()), 'milan')).network.CIDRs;
    expect(remapped?.pod).not.toEqual(remote?.pod);
  });

  test('cordon and uncordon, drain and activate a tenant', async () => {
    expect(await setTenantCondition(target(milan()), 'rome', 'Cordoned', 'Active')).toBe(true);
    const copy = { namespace: 'liqo-tenant-rome', name: 'milan' };
    const mark = async () =>
      (await milan().api.get(resourceSlices, copy))?.metadata.annotations?.['liqo.io/cordon-tenant'];
    await eventually('the copy to be cordoned', async () => (await mark()) === 'true');
    expect(await setTenantCondition(target(milan()), 'rome', 'Cordoned', 'Active')).toBe(false);
    expect(await setTenantCondition(target(milan()), 'rome', 'Active', 'Cordoned')).toBe(true);
    await eventually('the copy to be free', async () => (await mark()) !== 'true');
    await setTenantCondition(target(milan()), 'rome', 'Drained');
    await eventually(
      'the copy to be taken back',
      async () => (await milan().api.get(resourceSlices, copy)) === undefined,
    );
    await setTenantCondition(target(milan()), 'rome', 'Active');
    await eventually('the copy to return', async () => (await milan().api.get(resourceSlices, copy)) !== undefined, {
      withinMs: 60_000,
    });
  }, 120_000);

  test('unpeer ends it within its time, and leaves nothing but the tenant namespaces', async () => {
    const waited = await unpeer(stage.atItsPace(rome()), stage.atItsPace(milan()));
    expect(waited.filter(({ ms }) => ms > mostMs)).toEqual([]);
    await stage.nothingShared();
    expect(await milan().api.get(namespaces, { name: 'liqo-tenant-rome' })).toBeDefined();
    await stage.withoutNamespaces();
  }, 240_000);
});

const roleAt = async ({ api }: DeclaredCluster, peerId: string) =>
  (await api.get(foreignClusters, { name: peerId }))?.status?.role;

describe('liqoctl, in both directions', () => {
  test('shares one link, and each cluster is consumer and provider of the other', async () => {
    await peer(target(rome()), target(milan()), nodePort);
    await peer(target(milan()), target(rome()), nodePort);
    await eventually('the roles', async () => {
      expect([await roleAt(rome(), 'milan'), await roleAt(milan(), 'rome')]).toEqual([
        'ConsumerAndProvider',
        'ConsumerAndProvider',
      ]);
      return true;
    });
    for (const cluster of [rome(), milan()])
      expect((await infoPeer(target(cluster), cluster === rome() ? 'milan' : 'rome')).network.gateway.both).toBe(1);
  }, 240_000);

  test('get kubeconfig prints credentials that work', async () => {
    const kubeconfig = await getKubeconfig(target(rome()), 'controlplane-milan', 'milan');
    const connection = await connectKubeconfig(kubeconfig);
    const api = createKubeApi(connection, { clock: systemClock, log: silentLog });
    const seen = await api.list(resourceSlices, { namespace: 'liqo-tenant-rome' });
    // The copy of its own, and what milan asks of rome.
    expect(seen.map(({ metadata }) => metadata.name).sort()).toEqual(['milan', 'rome']);
    connection.close();
  });

  test('unpeer --delete-namespaces is refused while the other direction lives', async () => {
    await expect(unpeer(target(rome()), target(milan()), { deleteNamespaces: true })).rejects.toThrow('bidirectional');
  });

  test('uninstall is refused and names the peer', async () => {
    const { code, err } = await isthmus(['uninstall', '--kubeconfig', milan().server.kubeconfigPath]);
    expect([code, err]).toEqual([5, expect.stringContaining('rome (networking, authentication, offloading)')]);
  });

  test('unpeer of one direction leaves the link to the other', async () => {
    await unpeer(target(rome()), target(milan()));
    await eventually('one direction', async () => (await roleAt(milan(), 'rome')) === 'Provider');
    expect((await infoPeer(target(milan()), 'rome')).network.status).toBe('Healthy');
    await unpeer(target(milan()), target(rome()), { deleteNamespaces: true });
    await stage.nothingShared();
  }, 240_000);
});

byHand(() => stage);

const halves = () => [
  { cluster: rome(), id: 'rome' },
  { cluster: milan(), id: 'milan' },
];

async function writtenManifests(): Promise<Readonly<Record<string, readonly KubeObject[]>>> {
  const dir = await mkdtemp(path.join(tmpdir(), 'isthmus-mixed-'));
  const [consumer, provider] = [rome().server.kubeconfigPath, milan().server.kubeconfigPath];
  const line = `generate peering --consumer ${consumer} --provider ${provider} --cpu 1 --out ${dir}`;
  const { code, err } = await isthmus(line.split(' '));
  expect(code, err).toBe(0);
  const read = async (id: string): Promise<KubeObject[]> => {
    const files = ['peering.yaml', 'secrets.yaml'].map((file) => readFile(path.join(dir, id, file), 'utf8'));
    const texts = await Promise.all(files);
    return texts.flatMap((text) => yaml.parseAllDocuments(text).map((document) => document.toJS() as KubeObject));
  };
  const all = { rome: await read('rome'), milan: await read('milan') };
  await rm(dir, { recursive: true });
  return all;
}

const isUp = () =>
  eventually(
    'info peer',
    async () => {
      expect(await infoPeer(target(rome()), 'milan')).toMatchObject({
        info: { role: 'Provider' },
        network: { status: 'Healthy' },
        // No keys were exchanged: there is no Identity, whose address it would show.
        warnings: ['no address of the API server'],
        authentication: { status: 'Healthy', resourceSlices: [{ accepted: true }] },
        offloading: { virtualNodes: [{ name: 'milan' }] },
      });
      return true;
    },
    { withinMs: 60_000 },
  );

describe('a peering made of manifests', () => {
  test('is seen by liqoctl info peer and ended by liqoctl unpeer', async () => {
    const manifests = await writtenManifests();
    await Promise.all(halves().map(({ cluster, id }) => applyAll(cluster.api, manifests[id] ?? [])));
    await isUp();
    await unpeer(target(rome()), target(milan()));
    await stage.nothingShared();
    await stage.withoutNamespaces();
  }, 240_000);
});

peeringUsers(() => stage);

describe('liqoctl force unpeer', () => {
  test('frees this side from a peer that is dead', async () => {
    await peer(target(rome()), target(milan()), nodePort);
    await milan().server.kill();
    await forceUnpeer(target(rome()), 'milan', 60_000);
  }, 240_000);
});
