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
import { leaseApiServer } from '#test/harness/api-server-pool/lease.ts';
import type { ApiServer } from '#test/harness/kube-apiserver.ts';
import { createBrokerClient } from './broker/broker-client.ts';
import { type BrokerChild, serveBroker } from './broker-child.ts';
import { capturedIo, isthmus, type Ran } from './captured-io.ts';
import { openCluster } from './cluster/open.ts';

let dir = '';
let server: ApiServer;
let broker: BrokerChild;

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
  const spec = { url: broker.url, tenant: 'default', clusterId: 'rome' };
  const link = object('isthmus.dev/v1alpha1', 'BrokerLink', { name: 'broker' }, { spec });
  await kube.apply(brokerLinks, link, 'test');
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
  const { code, err } = await status('here', 'milan');
  // The peer is one of the broker alone: no agent has written a ForeignCluster here.
  expect([code, err]).toEqual([4, expect.stringContaining('has no peer "milan"')]);
});

test('not logged in, or logged in elsewhere, it shows this end and says why', async () => {
  const none = await status('nowhere');
  expect([none.code, none.out]).toEqual([0, expect.stringContaining(`log in: isthmus login ${broker.url}`)]);
  const other = await serveBroker(path.join(dir, 'other'), '127.0.0.1:0');
  await cli('there', 'login', other.url, '--ca-file', other.caFile, '--key', other.adminKey ?? '');
  const elsewhere = await status('there', '-o', 'json');
  await other.end('SIGTERM');
  expect(JSON.parse(elsewhere.out)).toMatchObject({ noPeerings: expect.stringContaining(`the cluster's broker is`) });
  const away = await status('there', '-o', 'json');
  expect(JSON.parse(away.out)).not.toHaveProperty('peerings');
});
