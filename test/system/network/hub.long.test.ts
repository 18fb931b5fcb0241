/**
 * Three real clusters with the same pod and Service ranges, the first of which is the hub of the others. `kernel/hub.real.test.ts` has the same
 * between kernels, and `node/node-process.real.test.ts` with node processes and an API server.
 */
import path from 'node:path';
import { afterAll, beforeAll, expect, test, vi } from 'vitest';
import { pods, services } from '#shared/domain/core-kinds.ts';
import { networkKinds } from '#shared/schema/liqo/network-resources.ts';
import { eventually } from '#test/harness/eventually.ts';
import { NetnsFixture } from '#test/harness/netns.ts';
import { openProductClusters, removeProductClusters } from '#test/harness/product-clusters.ts';
import { repositoryRoot } from '#test/testbed/repository-root.ts';
import { clusterNames, createStage, isReady, type Stage } from '../whole-clusters/stage.ts';
import { container, pod } from '../whole-clusters/workloads.ts';
import { answerTo, calledAt, exposedAs, leafName, leafOf, loginAt, peerWithLeaf, servedBy } from './leaves.ts';

const place = { root: repositoryRoot, dir: path.join(repositoryRoot, '.build', 'network-hub') };
const ranges = { podCidr: '10.50.0.0/16', serviceCidr: '10.150.0.0/16' } as const;
const namespace = 'crossing';
const service = 'abroad';
const port = 9000;
const pass = { withinMs: 30_000, everyMs: 50 } as const;
vi.setConfig({ testTimeout: 240_000, hookTimeout: 180_000 });

const netnsWorld = new NetnsFixture();
let stage: Stage;

beforeAll(async () => {
  await removeProductClusters(place);
  const clusters = [...clusterNames, leafName].map((name) => ({ name, ...ranges }));
  const world = await openProductClusters({ ...place, clusters, brokerPort: 7694 });
  await Promise.all(clusters.map(({ name }) => world.join(name)));
  stage = await createStage(world);
  await stage.mustPeer();
  await stage.createNamespace(namespace);
  await stage.mustOffload(namespace, '--strategy', 'Remote');
  const labels = { app: service };
  await stage.apply('rome', pod(namespace, 'one', [container(['serve'])], { labels }), {
    apiVersion: 'v1',
    kind: 'Service',
    metadata: { name: service, namespace },
    spec: { selector: labels, ports: [{ port: 80, targetPort: 8080 }] },
  } as never);
  await stage.podThat('rome', [namespace, 'one'], 'is ready', isReady);
}, 900_000);
afterAll(async () => {
  await netnsWorld.close();
  await removeProductClusters(place);
}, 180_000);

test('pods of rome at milan and at turin reach each other by its Services, and each sees which pod calls', async () => {
  const [atMilan, atTurin] = [[namespace, 'one'] as const, [namespace, 'leaf'] as const];
  await peerWithLeaf(stage);
  await stage.apply(
    'rome',
    pod(...atTurin, [container(['serve'])], {
      labels: { app: 'leaf' },
      nodeSelector: { 'liqo.io/remote-cluster-id': leafName },
    }),
    {
      apiVersion: 'v1',
      kind: 'Service',
      metadata: { name: 'leaf', namespace },
      spec: { selector: { app: 'leaf' }, ports: [{ port: 80, targetPort: 8080 }] },
    } as never,
  );
  const turin = await leafOf({ api: await loginAt(stage, leafName), world: netnsWorld }, atTurin, port);
  const milan = await leafOf({ api: stage.api('milan'), world: netnsWorld }, atMilan, port);
  const [exposedOne, exposedLeaf] = [await exposedAs(stage, atMilan), await exposedAs(stage, atTurin)];
  const leafSeenHere = await calledAt(milan, exposedLeaf);
  const oneSeenThere = await calledAt(turin, exposedOne);
  expect(await servedBy(milan, namespace, 'leaf', leafSeenHere)).toEqual([leafSeenHere]);
  expect(await servedBy(turin, namespace, service, oneSeenThere)).toContain(oneSeenThere);
  expect(await eventually('milan to turin', () => milan.place.netns.who(leafSeenHere, port), pass)).toBe(oneSeenThere);
  expect(await eventually('turin to milan', () => turin.place.netns.who(oneSeenThere, port), pass)).toBe(leafSeenHere);
  const leafService = await milan.api.get(services, { namespace: `${namespace}-rome`, name: 'leaf' });
  expect(await answerTo(milan, `http://${leafService?.spec?.clusterIP}/remote`)).toContain(oneSeenThere);
  for (const [kind, name] of [
    [pods, 'leaf'],
    [services, 'leaf'],
  ] as const)
    await stage.api('rome').delete(kind as typeof pods, { namespace, name });
  await stage.world.mustIsthmus('unpeer', 'rome', leafName, '--wait');
  await eventually(
    'no pod of rome is exposed any more',
    async () => (await stage.api('rome').list(networkKinds.ips, { namespace })).length === 0,
    pass,
  );
}, 240_000);
