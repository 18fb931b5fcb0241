/** Two real clusters of one node each, with the same ranges, that no broker knows: peered by the manifests of Liqo's guide, and by liqoctl's requests. */
import path from 'node:path';
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest';
import { nodes } from '#shared/domain/core-kinds.ts';
import { foreignClusters } from '#shared/schema/liqo/foreign-cluster.ts';
import { quotas } from '#shared/schema/liqo/quota.ts';
import { info, infoPeer, version } from '#test/e2e/liqoctl/info.ts';
import { offloadNamespace, unoffloadNamespace } from '#test/e2e/liqoctl/offload.ts';
import { cordonSlice, createResourceSlice, peer, unpeer } from '#test/e2e/liqoctl/peer.ts';
import { createWaits } from '#test/e2e/liqoctl/requests.ts';
import { removeTestNetwork, testNetwork } from '#test/e2e/liqoctl/test-network.ts';
import { eventually } from '#test/harness/eventually.ts';
import { inOrder } from '#test/harness/in-order.ts';
import { repositoryRoot } from '#test/testbed/repository-root.ts';
import { isPeered } from '../rounds/rounds.ts';
import { type ClusterName, isReady, patience } from '../whole-clusters/stage.ts';
import { container, pod } from '../whole-clusters/workloads.ts';
import { type Ground, openGround } from './ground.ts';
import { applyGuide, deleteGuide } from './guide.ts';
import { openOutside } from './outside.ts';

const dir = process.env.ISTHMUS_BED ?? path.join(repositoryRoot, '.build', 'brokerless');
vi.setConfig({ testTimeout: 240_000, hookTimeout: 180_000 });
let ground: Ground;

// In this order: each test finds what the ones before it left.
inOrder('file');
beforeAll(async () => {
  ground = await openGround({ dir, brokerPort: 7681 });
  await ground.remember();
}, 900_000);
afterAll(async () => await ground?.close(), 180_000);

describe("the manifests of Liqo's guide, applied on both sides at once in an order drawn by seed 1,", () => {
  test('become a virtual node, a network in both directions, and a pod that runs next door', async () => {
    const { stage, guide } = ground;
    await applyGuide(stage, guide, 1);
    await isPeered(ground);
    const abroad = pod('demo', 'abroad', [container(['serve'])], { nodeSelector: { 'liqo.io/type': 'virtual-node' } });
    await stage.apply('rome', abroad);
    const { spec, status } = await stage.podThat('rome', ['demo', 'abroad'], 'is ready', isReady);
    expect(spec?.nodeName).toBe('test');
    const twin = await stage.podThat('milan', ['demo-rome', 'abroad'], 'is ready', isReady);
    const words = ['-n', 'near', 'exec', 'near', '--', 'get', `http://${status?.podIP}:8080/env`];
    expect((await stage.kubectl('rome', words)).stdout).toContain('"HOSTNAME": "abroad"');
    expect(twin.status?.podIP).not.toBe(status?.podIP);
  });

  test('and deleted in another, with the pod still running, leave the objects of both as they were', async () => {
    await deleteGuide(ground.stage, ground.guide, 1);
    await ground.asBefore();
  });
});

const isNodeReady = async (name: string): Promise<boolean | undefined> =>
  (await ground.stage.api('rome').get(nodes, { name }))?.status?.conditions?.some(
    ({ type, status }) => type === 'Ready' && status === 'True',
  );

describe('liqoctl', () => {
  const [rome, milan] = [() => ground.target('rome'), () => ground.target('milan')];

  test('version and info: the cluster, its ranges, and every pod of ours Ready', async () => {
    expect(await version(rome())).toBe(ground.stage.world.image.split(':').at(-1));
    const { local, network } = await info(rome());
    expect(local).toMatchObject({ clusterID: 'rome' });
    expect(network).toMatchObject({ podCIDRs: ['10.50.0.0/16'], serviceCIDR: '10.150.0.0/16' });
    await eventually('every pod to be Ready', async () => {
      expect((await info(rome())).health).toEqual({ healthy: true, unhealthyPods: [] });
      return true;
    });
  });

  test('peer --in-band: through the link to the API server of the other, each wait within the time-out', async () => {
    const waited = await peer(rome(), milan(), { serviceType: 'NodePort', resources: { cpu: '2' }, inBand: true });
    const slowest = waited.toSorted((a, b) => b.ms - a.ms).slice(0, 3);
    console.log(`peer: ${waited.reduce((sum, { ms }) => sum + ms, 0)} ms, slowest ${JSON.stringify(slowest)}`);
    await eventually('the node is Ready', () => isNodeReady('milan'), patience);
    await ground.crosses();
    await eventually('the summary', async () => {
      const { authentication, network, offloading, warnings } = await infoPeer(rome(), 'milan');
      expect(warnings).toEqual([]);
      expect(authentication.APIServerAddr).toMatch(/^http:\/\/10\.\d+\.\d+\.\d+:8118$/);
      expect(network.status).toBe('Healthy');
      expect(offloading).toMatchObject({ status: 'Healthy', virtualNodes: [{ name: 'milan', status: 'Healthy' }] });
      return true;
    });
  });

  test('cordon resourceslice at the provider takes no new pods of that slice alone, until uncordon', async () => {
    const cordoned = async () => (await milan().api.list(quotas)).filter(({ spec }) => spec.cordoned === true);
    const slice = { name: 'second', resources: { cpu: '1' }, virtualNode: false };
    expect(await createResourceSlice(rome(), 'milan', slice, createWaits(120_000))).toBeUndefined();
    // liqoctl reads the slice and writes it whole, once: it fails where the agent wrote it in between, and its user runs it again.
    const command = (isCordoned: boolean) =>
      eventually(
        'the command to get through',
        () => cordonSlice(milan(), 'second', 'rome', isCordoned).then(() => true),
        patience,
      );
    await command(true);
    await eventually('one cordoned', async () => (await cordoned()).length === 1, patience);
    await command(false);
    await eventually('none', async () => (await cordoned()).length === 0, patience);
  });

  test('test network --np-ext --lb --ip: every pod reaches all it should, and so does a host that is neither node nor pod', async () => {
    const outside = await openOutside(ground.stage);
    const tools = {
      ...outside,
      container: container(['serve']),
      port: 8080,
      fetch: async (cluster: string, name: string, url: string) => {
        const words = ['-n', 'liqo-test-network', 'exec', name, '--', 'get', url];
        return (await ground.stage.kubectl(cluster as ClusterName, words)).code === 0;
      },
    };
    const flags = { nodePortsFromHere: true, loadBalancer: true, externalIp: true };
    const known = async () =>
      (await ground.stage.api('rome').list(foreignClusters)).map(({ metadata }) => metadata.name);
    let peers: readonly string[] = [];
    const checked = await testNetwork(rome(), [milan()], tools, flags)
      .finally(async () => {
        peers = await known();
        await outside.close();
      })
      .finally(() => removeTestNetwork(rome()));
    expect(checked.filter(({ passed }) => !passed)).toEqual([]);
    expect([...new Set(checked.map(({ what }) => what))].sort()).toEqual([
      'node to pod',
      'outside to LoadBalancer',
      'outside to NodePort',
      'pod to NodePort',
      'pod to Service',
      'pod to internet',
      'pod to own remapped IP',
      'pod to pod',
      'pod to remapped IP',
    ]);
    expect(peers).toEqual(['milan']);
  });

  test('offload namespace is Ready within 20 s, and unoffload takes it back', async () => {
    const { warning } = await offloadNamespace(rome(), 'demo', { strategy: 'Remote' });
    expect(warning).toBeUndefined();
    const nobody = [{ matchExpressions: [{ key: 'kubernetes.io/hostname', operator: 'In' as const, values: ['x'] }] }];
    expect((await offloadNamespace(rome(), 'demo', { terms: nobody })).warning).toBe('no cluster is selected');
    await unoffloadNamespace(rome(), 'demo');
  });
});

describe('unpeer of liqoctl', () => {
  test('ends what it made, and the clusters are as they were', async () => {
    const [rome, milan] = [ground.target('rome'), ground.target('milan')];
    await unpeer(rome, milan, { deleteNamespaces: true });
    await ground.asBefore();
  });
});
