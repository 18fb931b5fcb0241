/**
 * The requests of liqoctl 1.2.0, in its order, with its polls and assertions, against two installed clusters. Pods and the tunnel are played.
 * Not covered here, each with its reason:
 * - Node named as the VirtualNode and Ready, offload and unoffload namespace: need virtual nodes with a kubelet endpoint, as in test/system/world
 * - `--in-band`: the proxy and the IP object `api-server-proxy` need the network between the clusters
 * - test network and its EndpointSlice counts, move volume and namespace `liqo-storage`: need running pods
 * - `info` health of all pods: there are no kubelets; the Deployment's pods are never ready
 */
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import * as yaml from 'yaml';
import { createKubeApi } from '#agent/kube/api.ts';
import { connectKubeconfig } from '#agent/kube/kubeconfig.ts';
import { systemClock } from '#agent/runtime/clock.ts';
import { isthmus } from '#cli/captured-io.ts';
import { clusterRoleBindings, namespaces, secrets } from '#shared/domain/core-kinds.ts';
import type { KubeObject } from '#shared/domain/kube-object.ts';
import { silentLog } from '#shared/ports/log.ts';
import { configurations } from '#shared/schema/liqo/configuration.ts';
import { foreignClusters } from '#shared/schema/liqo/foreign-cluster.ts';
import { identities } from '#shared/schema/liqo/identity.ts';
import { resourceSlices } from '#shared/schema/liqo/resource-slice.ts';
import { tenants } from '#shared/schema/liqo/tenant.ts';
import { virtualNodes } from '#shared/schema/liqo/virtual-node.ts';
import { eventually } from '#test/harness/eventually.ts';
import { type DeclaredCluster, playLink, startCluster } from '#test/system/declarative/cluster.ts';
import { applyAll, deleteAll } from '#test/system/declarative/orders.ts';
import { differences, stateOf } from '#test/system/declarative/state.ts';
import { info, infoPeer } from './liqoctl/info.ts';
import { peer, setTenantCondition, unpeer } from './liqoctl/peer.ts';
import type { Target } from './liqoctl/requests.ts';

let [rome, milan] = [] as unknown as [DeclaredCluster, DeclaredCluster];
const stop = new AbortController();
let link: Promise<void> | undefined;
const liqoNamespace = 'liqo';
const target = ({ api }: DeclaredCluster): Target => ({ api, liqoNamespace });
const nodePort = { serviceType: 'NodePort', resources: { cpu: '2' } } as const;
/** Of any single wait, most of it the polls of liqoctl itself. */
const mostMs = 15_000;
const mixedRounds = 4;

beforeAll(async () => {
  [rome, milan] = await Promise.all([
    startCluster({ id: 'rome', podCidr: '10.200.0.0/16', externalCidr: '10.70.0.0/16', nodeAddress: '192.0.2.11' }),
    startCluster({ id: 'milan', podCidr: '10.200.0.0/16', externalCidr: '10.70.0.0/16', nodeAddress: '192.0.2.21' }),
  ]);
  link = playLink(rome, milan, stop.signal);
}, 900_000);
afterAll(async () => {
  stop.abort();
  await link;
  await Promise.all([rome?.stop(), milan?.stop()]);
});

async function nothingShared(): Promise<void> {
  await eventually(
    'nothing to be shared',
    async () => {
      for (const { api } of [rome, milan])
        for (const type of [tenants, resourceSlices, virtualNodes, configurations])
          expect((await api.list(type as typeof tenants)).map(({ metadata }) => metadata.name)).toEqual([]);
      const bound = await milan.api.list(clusterRoleBindings, { labelSelector: 'liqo.io/remote-cluster-id=rome' });
      expect(bound).toEqual([]);
      return true;
    },
    { withinMs: 60_000 },
  );
}

describe('liqoctl', () => {
  test('info finds the cluster, its version and its ranges', async () => {
    const { local, network, peerings } = await info(target(rome));
    expect(local).toMatchObject({ clusterID: 'rome', version: '1.2.0', APIServerAddr: rome.server.url });
    expect(network).toEqual({
      podCIDRs: ['10.200.0.0/16'],
      serviceCIDR: '10.96.0.0/16',
      externalCIDR: '10.70.0.0/16',
      internalCIDR: '10.80.0.0/16',
    });
    expect(peerings).toEqual([]);
  });

  test('peer connects, authenticates and asks for resources; each wait ends early', async () => {
    const waited = await peer(target(rome), target(milan), nodePort);
    expect(waited.filter(({ ms }) => ms > mostMs)).toEqual([]);
    await eventually('the VirtualNode', () =>
      rome.api.get(virtualNodes, { namespace: 'liqo-tenant-milan', name: 'milan' }),
    );
  }, 240_000);

  test('peer again changes the resources, and nothing else', async () => {
    await peer(target(rome), target(milan), { ...nodePort, resources: { cpu: '3' } });
    await eventually('the new grant', async () => {
      const slice = await rome.api.get(resourceSlices, { namespace: 'liqo-tenant-milan', name: 'milan' });
      return slice?.status?.resources?.cpu === '3';
    });
  }, 240_000);

  test('info peer shows both sides of it', async () => {
    await eventually('both summaries', async () => {
      const [consumer, provider] = [await infoPeer(target(rome), 'milan'), await infoPeer(target(milan), 'rome')];
      expect(consumer).toMatchObject({
        info: { clusterID: 'milan', role: 'Provider' },
        network: { status: 'Healthy', gateway: { role: 'Server', both: 1 } },
        authentication: {
          status: 'Healthy',
          APIServerAddr: milan.server.url,
          resourceSlices: [{ name: 'milan', action: 'Consuming', accepted: true }],
        },
        offloading: { virtualNodes: ['milan'] },
      });
      expect(provider).toMatchObject({
        info: { clusterID: 'rome', role: 'Consumer' },
        network: { status: 'Healthy', gateway: { role: 'Client', both: 1 } },
        authentication: { resourceSlices: [{ action: 'Providing', accepted: true }] },
      });
      return true;
    });
    // Both clusters have the same ranges: each sees the other's elsewhere.
    const { remote, remapped } = (await infoPeer(target(rome), 'milan')).network.CIDRs;
    expect(remapped?.pod).not.toEqual(remote?.pod);
  });

  test('cordon and uncordon, drain and activate a tenant', async () => {
    expect(await setTenantCondition(target(milan), 'rome', 'Cordoned', 'Active')).toBe(true);
    const copy = { namespace: 'liqo-tenant-rome', name: 'milan' };
    const mark = async () =>
      (await milan.api.get(resourceSlices, copy))?.metadata.annotations?.['liqo.io/cordon-tenant'];
    await eventually('the copy to be cordoned', async () => (await mark()) === 'true');
    expect(await setTenantCondition(target(milan), 'rome', 'Cordoned', 'Active')).toBe(false);
    expect(await setTenantCondition(target(milan), 'rome', 'Active', 'Cordoned')).toBe(true);
    await eventually('the copy to be free', async () => (await mark()) !== 'true');
    await setTenantCondition(target(milan), 'rome', 'Drained');
    await eventually(
      'the copy to be taken back',
      async () => (await milan.api.get(resourceSlices, copy)) === undefined,
    );
    await setTenantCondition(target(milan), 'rome', 'Active');
    await eventually('the copy to return', async () => (await milan.api.get(resourceSlices, copy)) !== undefined, {
      withinMs: 60_000,
    });
  }, 120_000);

  test('unpeer ends it within its time, and leaves nothing but the tenant namespaces', async () => {
    const waited = await unpeer(target(rome), target(milan));
    expect(waited.filter(({ ms }) => ms > mostMs)).toEqual([]);
    await nothingShared();
    expect(await milan.api.get(namespaces, { name: 'liqo-tenant-rome' })).toBeDefined();
    await withoutNamespaces();
  }, 240_000);
});

async function withoutNamespaces(): Promise<void> {
  for (const { api } of [rome, milan])
    for (const name of ['liqo-tenant-rome', 'liqo-tenant-milan']) await api.delete(namespaces, { name });
  await eventually(
    'the namespaces to go',
    async () => {
      const all = await Promise.all(
        [rome, milan].map(({ api }) => api.list(namespaces, { labelSelector: 'liqo.io/tenant-namespace' })),
      );
      return all.flat().length === 0;
    },
    { withinMs: 60_000 },
  );
}

const roleAt = async ({ api }: DeclaredCluster, peerId: string) =>
  (await api.get(foreignClusters, { name: peerId }))?.status?.role;

describe('liqoctl, in both directions', () => {
  test('shares one link, and each cluster is consumer and provider of the other', async () => {
    await peer(target(rome), target(milan), nodePort);
    await peer(target(milan), target(rome), nodePort);
    await eventually('the roles', async () => {
      expect([await roleAt(rome, 'milan'), await roleAt(milan, 'rome')]).toEqual([
        'ConsumerAndProvider',
        'ConsumerAndProvider',
      ]);
      return true;
    });
    for (const cluster of [rome, milan])
      expect((await infoPeer(target(cluster), cluster === rome ? 'milan' : 'rome')).network.gateway.both).toBe(1);
  }, 240_000);

  test('get kubeconfig prints credentials that work', async () => {
    const ref = { namespace: 'liqo-tenant-milan', name: 'controlplane-milan' };
    const identity = await rome.api.get(identities, ref);
    const name = identity?.status?.kubeconfigSecretRef?.name ?? '';
    const secret = await rome.api.get(secrets, { namespace: ref.namespace, name });
    const kubeconfig = Buffer.from(secret?.data?.kubeconfig ?? '', 'base64').toString();
    const connection = await connectKubeconfig(kubeconfig);
    const api = createKubeApi(connection, { clock: systemClock, log: silentLog });
    const seen = await api.list(resourceSlices, { namespace: 'liqo-tenant-rome' });
    // The copy of its own, and what milan asks of rome.
    expect(seen.map(({ metadata }) => metadata.name).sort()).toEqual(['milan', 'rome']);
    connection.close();
  });

  test('uninstall is refused and names the peer', async () => {
    const { code, err } = await isthmus(['uninstall', '--kubeconfig', milan.server.kubeconfigPath]);
    expect([code, err]).toEqual([5, expect.stringContaining('rome (networking, authentication, offloading)')]);
  });

  test('unpeer of one direction leaves the link to the other', async () => {
    await unpeer(target(rome), target(milan));
    await eventually('one direction', async () => (await roleAt(milan, 'rome')) === 'Provider');
    expect((await infoPeer(target(milan), 'rome')).network.status).toBe('Healthy');
    await unpeer(target(milan), target(rome));
    await nothingShared();
    await withoutNamespaces();
  }, 240_000);
});

const halves = () => [
  { cluster: rome, id: 'rome' },
  { cluster: milan, id: 'milan' },
];

async function writtenManifests(): Promise<Readonly<Record<string, readonly KubeObject[]>>> {
  const dir = await mkdtemp(path.join(tmpdir(), 'isthmus-mixed-'));
  const [consumer, provider] = [rome.server.kubeconfigPath, milan.server.kubeconfigPath];
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
      expect(await infoPeer(target(rome), 'milan')).toMatchObject({
        info: { role: 'Provider' },
        network: { status: 'Healthy' },
        authentication: { APIServerAddr: milan.server.url, resourceSlices: [{ accepted: true }] },
        offloading: { virtualNodes: ['milan'] },
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
    await unpeer(target(rome), target(milan));
    await nothingShared();
    await withoutNamespaces();
  }, 240_000);

  test('and one made by liqoctl, in turns, leave both clusters as they were', async () => {
    const states = () => Promise.all(halves().map(({ cluster }) => stateOf(cluster.api)));
    const before = await states();
    for (let round = 0; round < mixedRounds; round++) {
      if (round % 2 === 0) {
        const manifests = await writtenManifests();
        await Promise.all(halves().map(({ cluster, id }) => applyAll(cluster.api, manifests[id] ?? [])));
        await isUp();
        await Promise.all(halves().map(({ cluster, id }) => deleteAll(cluster.api, manifests[id] ?? [])));
      } else {
        await peer(target(rome), target(milan), nodePort);
        await isUp();
        await unpeer(target(rome), target(milan));
      }
      await withoutNamespaces();
    }
    await eventually('the state of before', async () => {
      expect(differences(await states(), before)).toEqual([]);
      return true;
    });
  }, 900_000);
});

describe('a peering user', () => {
  const cli = (line: string) => isthmus(`${line} --kubeconfig ${milan.server.kubeconfigPath}`.split(' '));
  let restricted: Target;

  test('is refused for the cluster itself, and made for a consumer', async () => {
    expect((await cli('generate peering-user milan')).code).toBe(2);
    const { code, out, err } = await cli('generate peering-user rome');
    expect(code, err).toBe(0);
    const connection = await connectKubeconfig(out);
    restricted = { api: createKubeApi(connection, { clock: systemClock, log: silentLog }), liqoNamespace };
    expect((await cli('generate peering-user rome')).code).toBe(5);
  });

  test('may not look anywhere else', async () => {
    await expect(restricted.api.list(namespaces)).rejects.toMatchObject({ code: 'kube_forbidden' });
    await expect(restricted.api.list(secrets, { namespace: 'liqo' })).rejects.toMatchObject({ code: 'kube_forbidden' });
    await expect(restricted.api.list(foreignClusters)).rejects.toMatchObject({ code: 'kube_forbidden' });
  });

  test('peers and unpeers with these rights alone', async () => {
    await peer(target(rome), restricted, nodePort);
    await unpeer(target(rome), restricted);
    await nothingShared();
  }, 240_000);

  test('has no rights any more within 5 s of being taken back', async () => {
    expect((await cli('delete peering-user rome')).code).toBe(0);
    await eventually(
      'the refusal',
      () =>
        restricted.api.list(tenants, { namespace: 'liqo-tenant-rome' }).then(
          () => false,
          (error: { code?: string }) => error.code === 'kube_forbidden',
        ),
      { withinMs: 5_000 },
    );
    expect((await cli('delete peering-user rome')).out).toContain('has no peering user');
    await withoutNamespaces();
  }, 90_000);
});

describe('liqoctl force unpeer', () => {
  test('frees this side from a peer that is dead', async () => {
    await peer(target(rome), target(milan), nodePort);
    await milan.server.kill();
    const dead = { metadata: { annotations: { 'liqo.io/foreign-cluster-permanently-unreachable': 'true' } } };
    await rome.api.mergePatch(foreignClusters, { name: 'milan' }, dead);
    await rome.api.delete(namespaces, { name: 'liqo-tenant-milan' });
    await eventually(
      'the namespace to go',
      async () => (await rome.api.get(namespaces, { name: 'liqo-tenant-milan' })) === undefined,
      { withinMs: 60_000 },
    );
    await milan.server.start();
  }, 240_000);
});
