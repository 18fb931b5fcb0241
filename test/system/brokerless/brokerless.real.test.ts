/** Two real clusters of one node each, with the same ranges, that no broker knows: peered by the manifests of Liqo's guide, and by liqoctl's requests. */
import path from 'node:path';
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest';
import { nodes } from '#shared/domain/core-kinds.ts';
import { quotas } from '#shared/schema/liqo/quota.ts';
import { info, infoPeer, version } from '#test/e2e/liqoctl/info.ts';
import { offloadNamespace, unoffloadNamespace } from '#test/e2e/liqoctl/offload.ts';
import { cordonSlice, createResourceSlice, peer } from '#test/e2e/liqoctl/peer.ts';
import { createWaits } from '#test/e2e/liqoctl/requests.ts';
import { eventually } from '#test/harness/eventually.ts';
import { repositoryRoot } from '#test/testbed/repository-root.ts';
import { isReady, patience } from '../world/stage.ts';
import { container, pod } from '../world/workloads.ts';
import { type Ground, openGround } from './ground.ts';
import { applyGuide, deleteGuide } from './guide.ts';

const dir = process.env.ISTHMUS_BED ?? path.join(repositoryRoot, '.build', 'brokerless');
vi.setConfig({ testTimeout: 240_000, hookTimeout: 180_000 });
let ground: Ground;

beforeAll(async () => {
  ground = await openGround({ dir, brokerPort: 7681 });
  await ground.remember();
}, 900_000);
afterAll(async () => await ground?.close(), 180_000);

describe("the manifests of Liqo's guide, applied on both sides at once in an order drawn by seed 1,", () => {
  test('become a virtual node, a network in both directions, and a pod that runs next door', async () => {
    const { stage, guide } = ground;
    await applyGuide(stage, guide, 1);
    await ground.crosses();
    await eventually('the node is Ready', () => isNodeReady('test'), patience);
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
    const { local, network, health } = await info(rome());
    expect(local).toMatchObject({ clusterID: 'rome' });
    expect(network).toMatchObject({ podCIDRs: ['10.50.0.0/16'], serviceCIDR: '10.150.0.0/16' });
    expect(health).toEqual({ healthy: true, unhealthyPods: [] });
  });

  test('peer --in-band: through the link to the API server of the other, each wait within the time-out', async () => {
    const waited = await peer(rome(), milan(), { serviceType: 'NodePort', resources: { cpu: '2' }, inBand: true });
    const slowest = waited.toSorted((a, b) => b.ms - a.ms).slice(0, 3);
    console.log(`peer: ${waited.reduce((sum, { ms }) => sum + ms, 0)} ms, slowest ${JSON.stringify(slowest)}`);
    await eventually('the node is Ready', () => isNodeReady('milan'), patience);
    await ground.crosses();
    const { authentication, network } = await infoPeer(rome(), 'milan');
    expect(authentication.APIServerAddr).toMatch(/^http:\/\/10\.\d+\.\d+\.\d+:8118$/);
    expect(network.status).toBe('Healthy');
  });

  test('cordon resourceslice at the provider takes no new pods of that slice alone, until uncordon', async () => {
    const cordoned = async () => (await milan().api.list(quotas)).filter(({ spec }) => spec.cordoned === true);
    const slice = { name: 'second', resources: { cpu: '1' }, virtualNode: false };
    expect(await createResourceSlice(rome(), 'milan', slice, createWaits(120_000))).toBeUndefined();
    await cordonSlice(milan(), 'second', 'rome', true);
    await eventually('one cordoned', async () => (await cordoned()).length === 1, patience);
    await cordonSlice(milan(), 'second', 'rome', false);
    await eventually('none', async () => (await cordoned()).length === 0, patience);
  });

  test('offload namespace is Ready within 20 s, and unoffload takes it back', async () => {
    const { warning } = await offloadNamespace(rome(), 'demo', { strategy: 'Remote' });
    expect(warning).toBeUndefined();
    const nobody = [{ matchExpressions: [{ key: 'kubernetes.io/hostname', operator: 'In' as const, values: ['x'] }] }];
    expect((await offloadNamespace(rome(), 'demo', { terms: nobody })).warning).toBe('no cluster is selected');
    await unoffloadNamespace(rome(), 'demo');
  });
});
