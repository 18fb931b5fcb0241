/** `isthmus status` of a cluster on a real API server, logged in at a real broker: both ends of its peerings. */
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { ScriptedAgent } from '#functions/local/scripted-agent.ts';
import { configMaps, namespaces } from '#shared/domain/core-kinds.ts';
import type { KubeObject } from '#shared/domain/kube-object.ts';
import { clusterIdConfigMap, systemNamespace } from '#shared/domain/liqo-keys.ts';
import { brokerLinks } from '#shared/schema/isthmus/broker-link.ts';
import { type ForeignCluster, foreignClusters } from '#shared/schema/liqo/foreign-cluster.ts';
import { leaseApiServer } from '#test/harness/api-server-pool/lease.ts';
import type { ApiServer } from '#test/harness/kube-apiserver.ts';
import { createBrokerClient } from './broker/broker-client.ts';
import { type BrokerChild, serveBroker } from './broker-child.ts';
import { capturedIo, isthmus, type Ran } from './captured-io.ts';
import { openCluster } from './cluster/open.ts';

let dir = '';
let server: ApiServer;
let broker: BrokerChild;
/** Notes in the cluster which broker it has joined. */
let joinedAt: (url: string) => Promise<void> = async () => undefined;

const cli = (config: string, ...args: string[]): Promise<Ran> =>
  isthmus(args, { env: { ISTHMUS_CONFIG: path.join(dir, config) } });
const status = (config: string, ...more: string[]): Promise<Ran> =>
  cli(config, 'status', '--kubeconfig', server.kubeconfigPath, ...more);

beforeAll(async () => {
  dir = await mkdtemp(path.join(tmpdir(), 'isthmus-status-'));
  [server, broker] = await Promise.all([leaseApiServer(), serveBroker(path.join(dir, 'data'), '127.0.0.1:0')]);
  const login = { url: broker.url, key: broker.adminKey ?? '', caPem: await readFile(broker.caFile, 'utf8') };
  expect((await cli('here', 'login', broker.url, '--ca-file', broker.caFile, '--key', login.key)).code).toBe(0);
  const client = createBrokerClient(capturedIo({}), login);
  for (const cluster of ['rome', 'milan', 'turin']) {
    const { token } = await client.api.createJoinToken({ body: { cluster } });
    expect((await new ScriptedAgent(token, login.caPem).enroll()).status).toBe(200);
  }
  client.close();
  expect((await cli('here', 'peer', 'rome', 'milan', '--cpu', '2')).code).toBe(0);
  expect((await cli('here', 'peer', 'turin', 'rome', '--cpu', '1')).code).toBe(0);

  const kube = await openCluster({ kubeconfig: server.kubeconfigPath }, capturedIo({}));
  const object = (apiVersion: string, kind: string, metadata: object, more: object): KubeObject =>
    ({ apiVersion, kind, metadata, ...more }) as KubeObject;
  await kube.apply(namespaces, object('v1', 'Namespace', { name: systemNamespace }, {}), 'test');
  const inSystem = { namespace: systemNamespace, name: clusterIdConfigMap };
  await kube.apply(configMaps, object('v1', 'ConfigMap', inSystem, { data: { CLUSTER_ID: 'rome' } }), 'test');
  // Of the peers that the broker knows, one that an agent has written down here.
  const peer = object('core.liqo.io/v1beta1', 'ForeignCluster', { name: 'milan' }, { spec: { clusterID: 'milan' } });
  await kube.apply(foreignClusters, peer as ForeignCluster, 'test');
  joinedAt = async (url) => {
    const spec = { url, tenant: 'default', clusterId: 'rome' };
    await kube.apply(brokerLinks, object('isthmus.dev/v1alpha1', 'BrokerLink', { name: 'broker' }, { spec }), 'test');
  };
  await joinedAt(broker.url);
}, 900_000);
afterAll(async () => {
  await broker?.end('SIGTERM');
  await server?.stop();
  await rm(dir, { recursive: true, force: true });
});

test('logged in at the broker of the cluster, it shows the conditions of both ends of each peering', async () => {
  const { code, out } = await status('here', '-o', 'json');
  const { peerings, warnings } = JSON.parse(out) as {
    peerings: { consumer: string; provider: string; conditions: { end: string; type: string }[] }[];
    warnings: string[];
  };
  expect([code, peerings.map(({ consumer, provider }) => `${consumer} -> ${provider}`).sort()]).toEqual([
    0,
    ['rome -> milan', 'turin -> rome'],
  ]);
  const ends = peerings.find(({ consumer }) => consumer === 'rome')?.conditions;
  expect(ends).toEqual(expect.arrayContaining([expect.objectContaining({ end: 'milan', type: 'ProviderOnline' })]));
  expect(ends).toEqual(expect.arrayContaining([expect.objectContaining({ end: 'rome', type: 'ConsumerOnline' })]));
  expect(warnings.join()).toContain('the broker says of milan');
  const text = (await status('here')).out;
  expect(text).toMatch(/peering +phase +at the consumer +at the provider/i);
  expect(text).toMatch(/rome -> milan, milan: \w+: /);
});

test('of one peer, it shows that peering only', async () => {
  const { code, out } = await status('here', 'milan', '-o', 'json');
  const { peerings } = JSON.parse(out) as { peerings: { consumer: string; provider: string }[] };
  expect([code, peerings.map(({ consumer, provider }) => `${consumer} -> ${provider}`)]).toEqual([
    0,
    ['rome -> milan'],
  ]);
});

test('of a peer that only the broker knows, it says that this cluster has none of that name', async () => {
  const { code, err } = await status('here', 'turin');
  expect([code, err]).toEqual([4, expect.stringContaining('has no peer "turin"')]);
});

test('not logged in, or logged in elsewhere, it shows this end and says why', async () => {
  const none = await status('nowhere');
  expect([none.code, none.out]).toEqual([0, expect.stringContaining(`log in: isthmus login ${broker.url}`)]);
  const other = await serveBroker(path.join(dir, 'other'), '127.0.0.1:0');
  await cli('there', 'login', other.url, '--ca-file', other.caFile, '--key', other.adminKey ?? '');
  const elsewhere = await status('there', '-o', 'json');
  await other.end('SIGTERM');
  expect(JSON.parse(elsewhere.out)).toMatchObject({ noPeerings: expect.stringContaining(`the cluster's broker is`) });
});

test('while the broker of the cluster is away, it shows this end and says so', async () => {
  const away = await serveBroker(path.join(dir, 'away-data'), '127.0.0.1:0');
  try {
    await cli('away', 'login', away.url, '--ca-file', away.caFile, '--key', away.adminKey ?? '');
    await joinedAt(away.url);
    const before = JSON.parse((await status('away', '-o', 'json')).out);
    await away.end('SIGTERM');
    const { code, out } = await status('away', '-o', 'json');
    const { peerings, noPeerings, clusterId } = JSON.parse(out);
    expect([code, before.noPeerings, before.peerings]).toEqual([0, undefined, []]);
    expect([peerings, clusterId]).toEqual([undefined, 'rome']);
    expect(noPeerings).toContain(away.url);
  } finally {
    await joinedAt(broker.url);
  }
});
