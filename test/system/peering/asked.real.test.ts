/** A `Peering` object in one cluster, a broker in between: asked early, granted, owned, and ended from every side. Real API servers and agents. */
import { createPrivateKey } from 'node:crypto';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { createBrokerController } from '#agent/broker/broker.ts';
import { joinSecretName } from '#agent/broker/session/enroll.ts';
import { ensureClusterKeys } from '#agent/peering/keys/ensure-keys.ts';
import { toBase64 } from '#agent/pki/pem.ts';
import { systemIds } from '#agent/runtime/ids.ts';
import { type Broker, startBroker } from '#functions/local/broker.ts';
import { secrets } from '#shared/domain/core-kinds.ts';
import { isthmusAnnotation, name, systemNamespace } from '#shared/domain/liqo-keys.ts';
import { silentLog } from '#shared/ports/log.ts';
import { type Peering, peerings } from '#shared/schema/isthmus/peering.ts';
import { type PeeringPolicy, peeringPolicies } from '#shared/schema/isthmus/peering-policy.ts';
import { foreignClusters } from '#shared/schema/liqo/foreign-cluster.ts';
import { resourceSlices } from '#shared/schema/liqo/resource-slice.ts';
import { eventually } from '#test/harness/eventually.ts';
import { inOrder } from '#test/harness/in-order.ts';
import { nothingLeft } from './broker-part.ts';
import { type More, type Pair, startPair, type TestCluster } from './clusters.ts';

let dir = '';
let broker: Broker;
let pair: Pair;
const patience = { withinMs: 40_000 };
const admin = { tenant: 'default', principal: 'api-key/test', role: 'admin', from: 'test', requestId: 'rq' } as const;
const slice = { namespace: name.tenantNamespace('milan'), name: 'milan' };
const wish = { name: 'to-milan' };

const withChannel: More = async (deps) => {
  const keys = await ensureClusterKeys(deps.cluster.api, systemNamespace);
  const config = { ...deps.config, systemNamespace, agentVersion: '0.1.0' };
  return [createBrokerController({ ...deps, config, ids: systemIds, privateKey: createPrivateKey(keys.privateKey) })];
};

async function join({ id, api }: TestCluster): Promise<void> {
  const { token } = await broker.control.clusters.createJoinToken(admin, id);
  await api.create(secrets, {
    apiVersion: 'v1',
    kind: 'Secret',
    metadata: { namespace: systemNamespace, name: joinSecretName },
    data: { token: toBase64(token) },
  });
}

const policy = (autoAccept: boolean) =>
  ({
    apiVersion: 'isthmus.dev/v1alpha1',
    kind: 'PeeringPolicy',
    metadata: { name: 'default' },
    spec: {
      trust: { firstKey: ['FirstUse'] },
      asConsumer: { enabled: true, autoAccept: true, peers: ['*'] },
      asProvider: { enabled: true, autoAccept, peers: ['*'], maxResourcesPerPeer: { cpu: '8' }, classes: ['default'] },
    },
  }) as unknown as PeeringPolicy;

// In this order: each test finds what the ones before it left.
inOrder('file');
beforeAll(async () => {
  dir = await mkdtemp(path.join(tmpdir(), 'isthmus-asked-'));
  const log = silentLog;
  [broker, pair] = await Promise.all([
    startBroker({ dataDir: dir, listen: '127.0.0.1:0', log, version: '0.1.0' }),
    startPair(withChannel),
  ]);
  await pair.consumer.api.create(peeringPolicies, policy(true));
  await pair.provider.api.create(peeringPolicies, policy(false));
  await join(pair.consumer);
}, 900_000);
afterAll(async () => {
  await pair?.stop();
  await broker?.close();
  await rm(dir, { recursive: true, force: true });
});

const status = async () => (await pair.consumer.api.get(peerings, wish))?.status;
const conditionOf = async (type: string) => (await status())?.conditions?.find((one) => one.type === type);
const create = (spec: object) =>
  pair.consumer.api.create(peerings, {
    apiVersion: 'isthmus.dev/v1alpha1',
    kind: 'Peering',
    metadata: wish,
    spec: { provider: 'milan', ...spec },
  } as Peering);
const isGranted = (cpu: string) =>
  eventually(
    `${cpu} CPU`,
    async () => {
      const granted = (await pair.consumer.api.get(resourceSlices, slice))?.status?.resources?.cpu;
      return String(granted) === cpu && (await conditionOf('ResourcesGranted'))?.status === 'True';
    },
    patience,
  );
const request = (cpu: string) =>
  broker.control.peerings.request(admin, { consumer: 'rome', provider: 'milan', resources: { cpu } });

test('one object asks before the other cluster has joined, says that it waits, and is taken up when that joins', async () => {
  await create({ resources: { cpu: '2' } });
  await eventually(
    'the wait for milan',
    async () => {
      const { phase } = (await status()) ?? {};
      const { reason, message = '' } = (await conditionOf('Accepted')) ?? {};
      return phase === 'Proposed' && reason === 'ClusterUnknown' && /^waits for cluster milan/.test(message);
    },
    patience,
  );
  await join(pair.provider);
  const joined = async () => (await broker.control.clusters.list(admin)).items.some(({ id }) => id === 'milan');
  await eventually('milan at the broker', joined, patience);
  await eventually('the object is taken up', async () => (await status())?.peering !== undefined, { withinMs: 10_000 });
}, 120_000);

test('the status names the side that has to consent, and consent is enough', async () => {
  await eventually(
    'the wait for consent',
    async () => {
      const { phase } = (await status()) ?? {};
      const consented = await conditionOf('Consented');
      return phase === 'Proposed' && consented?.status === 'False' && /milan/.test(consented.message ?? '');
    },
    patience,
  );
  expect(await pair.consumer.api.get(resourceSlices, slice)).toBeUndefined();
  await pair.provider.api.mergePatch(
    peeringPolicies,
    { name: 'default' },
    { spec: { asProvider: { autoAccept: true } } },
  );
  await isGranted('2');
  await eventually('the owner', async () => {
    const owner = async ({ api }: TestCluster, peer: string) =>
      (await api.get(foreignClusters, { name: peer }))?.metadata.annotations?.[isthmusAnnotation.owner];
    expect([(await status())?.owner, await owner(pair.consumer, 'milan'), await owner(pair.provider, 'rome')]).toEqual([
      'Object',
      'Peering to-milan',
      'broker',
    ]);
    return true;
  });
}, 120_000);

test('the object has the last word, until it leaves that to the broker', async () => {
  await expect(request('1')).rejects.toMatchObject({ code: 'owned_by_object' });
  await pair.consumer.api.mergePatch(peerings, wish, { spec: { owner: 'Broker' } });
  await eventually('the new owner', async () => (await status())?.owner === 'Broker', patience);
  await request('1');
  await isGranted('1');
  await pair.consumer.api.mergePatch(peerings, wish, { spec: { owner: 'Object', resources: { cpu: '3' } } });
  await isGranted('3');
}, 120_000);

test('deleting its slice ends it on both sides; the object says so, and asks again when it changes', async () => {
  await pair.consumer.api.delete(resourceSlices, slice);
  await eventually('the end', async () => (await status())?.phase === 'Gone', patience);
  expect(await conditionOf('Accepted')).toMatchObject({ status: 'False', reason: 'EndedElsewhere' });
  await nothingLeft(pair);
  await pair.consumer.api.mergePatch(peerings, wish, { spec: { resources: { cpu: '1' } } });
  await isGranted('1');
}, 120_000);

test('deleting the object ends what it owns', async () => {
  await pair.consumer.api.delete(peerings, wish);
  await nothingLeft(pair);
}, 120_000);
