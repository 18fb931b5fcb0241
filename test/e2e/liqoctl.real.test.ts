/**
 * The requests of liqoctl 1.2.0, in its order, with its polls and assertions, against two installed clusters. Pods and the tunnel are played
 * here; `liqoctl.long.test.ts` has both directions, single steps and dead peers, and test/system/brokerless real pods, for in-band, offloaded namespaces, `test
 * network` and the health of all pods. Not covered: `create virtualnode` with a Ready Node; `install`, which drives Helm.
 */
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { namespaces } from '#shared/domain/core-kinds.ts';
import { networkKinds } from '#shared/schema/liqo/network-resources.ts';
import { resourceSlices } from '#shared/schema/liqo/resource-slice.ts';
import { virtualNodes } from '#shared/schema/liqo/virtual-node.ts';
import { eventually } from '#test/harness/eventually.ts';
import { inOrder } from '#test/harness/in-order.ts';
import type { DeclaredCluster } from '#test/system/declarative/cluster.ts';
import { checklist } from './liqoctl/checklist.ts';
import { info, infoPeer, version } from './liqoctl/info.ts';
import { peer, setTenantCondition, unpeer } from './liqoctl/peer.ts';
import type { Target } from './liqoctl/requests.ts';
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

peeringUsers(() => stage);
