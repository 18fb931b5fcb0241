/** More of what liqoctl 1.2.0 asks of two installed clusters than `liqoctl.real.test.ts` has: both directions, single steps by hand, manifests, a peer that is dead. */
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import * as yaml from 'yaml';
import { isthmus } from '#cli/captured-io.ts';
import { createKubeApi } from '#kube/http/client.ts';
import { connectKubeconfig } from '#kube/http/kubeconfig.ts';
import type { KubeObject } from '#shared/domain/kube-object.ts';
import { silentLog } from '#shared/ports/log.ts';
import { systemClock } from '#shared/ports/system-clock.ts';
import { foreignClusters } from '#shared/schema/liqo/foreign-cluster.ts';
import { resourceSlices } from '#shared/schema/liqo/resource-slice.ts';
import { eventually } from '#test/harness/eventually.ts';
import { inOrder } from '#test/harness/in-order.ts';
import type { TestApiServer } from '#test/harness/kube-apiserver.ts';
import type { DeclaredCluster } from '#test/system/declarative/cluster.ts';
import { applyAll } from '#test/system/declarative/orders.ts';
import { getKubeconfig } from './liqoctl/authenticate.ts';
import { infoPeer } from './liqoctl/info.ts';
import { forceUnpeer, peer, unpeer } from './liqoctl/peer.ts';
import type { Target } from './liqoctl/requests.ts';
import { byHand } from './scenarios/by-hand.ts';
import { openOwnStage, type Stage } from './stage.ts';

let stage: Stage<TestApiServer>;
const [rome, milan] = [() => stage.rome, () => stage.milan];
const nodePort = { serviceType: 'NodePort', resources: { cpu: '2' } } as const;
const target = (cluster: DeclaredCluster): Target => stage.target(cluster);

// In this order: each test finds what the ones before it left.
inOrder('file');
beforeAll(async () => {
  stage = await openOwnStage();
}, 900_000);
afterAll(async () => await stage?.close());

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

describe('liqoctl force unpeer', () => {
  test('frees this side from a peer that is dead', async () => {
    await peer(target(rome()), target(milan()), nodePort);
    await milan().server.kill();
    await forceUnpeer(target(rome()), 'milan', 60_000);
  }, 240_000);
});
