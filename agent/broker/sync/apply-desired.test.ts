/** Desired sets over their life, on a cluster that only remembers: what ended stays ended, and touches nothing that came after it. */
import { describe, expect, test } from 'vitest';
import { namespaces } from '#shared/domain/core-kinds.ts';
import type { KubeObject, ResourceType } from '#shared/domain/kube-object.ts';
import { type Log, silentLog } from '#shared/ports/log.ts';
import { resourceSlices } from '#shared/schema/liqo/resource-slice.ts';
import type { DesiredSet, KubeManifest } from '#shared/schema/protocol/agent-protocol.ts';
import {
  answer,
  believing,
  manifests,
  namespace,
  rememberingCluster,
  set,
  signal,
  start,
} from '../testing/remembering-cluster.ts';
import type { PeerTrust } from '../trust/peer-trust.ts';

test('a peering that ended leaves the next one of the same pair alone', async () => {
  const { sets, settle, names } = start();
  sets.accept(answer(1, set('pe_1', 1, 'present')));
  await settle();
  sets.accept(answer(2, set('pe_1', 2, 'absent')));
  await settle();
  expect(names()).toEqual([]);
  sets.accept(answer(3, set('pe_2', 3, 'present')));
  await settle();
  expect(names()).toEqual(['Namespace|liqo-tenant-milan', 'ResourceSlice|liqo-tenant-milan/milan']);
});

test('what was applied is logged with the request at the broker that it follows from', async () => {
  const logged: [message: string, fields: object | undefined][] = [];
  const log: Log = { ...silentLog, info: (message, fields) => void logged.push([message, fields]) };
  const { sets, settle } = start(rememberingCluster(), believing, log);
  sets.accept(answer(1, { ...set('pe_1', 1, 'present'), requestId: 'req_7' }));
  await settle();
  sets.accept(answer(2, set('pe_1', 2, 'absent')));
  await settle();
  const said = { peering: 'pe_1', applied: 2, removed: 0, revision: 1, requestId: 'req_7' };
  expect(logged[0]).toEqual(['desired set applied', said]);
  expect(logged[1]?.[1]).not.toHaveProperty('requestId');
});

test('an ended peering that the broker sends once more after a restart touches nothing of the new one', async () => {
  const { sets, settle, names } = start();
  sets.accept({ ...answer(3, set('pe_1', 2, 'absent'), set('pe_2', 3, 'present')), full: true });
  await settle();
  expect(names()).toHaveLength(2);
  expect(sets.observed().find(({ peering }) => peering === 'pe_1')).toMatchObject({ objects: [], appliedRevision: 2 });
});

test('an ended peering is reported empty until the broker has acknowledged that, then forgotten', async () => {
  const { sets, settle } = start();
  sets.accept(answer(1, set('pe_1', 1, 'present')));
  await settle();
  sets.accept(answer(2, set('pe_1', 2, 'absent')));
  await settle();
  const reported = sets.observed();
  expect(reported).toEqual([{ peering: 'pe_1', role: 'consumer', appliedRevision: 2, objects: [], refusals: [] }]);
  sets.acknowledged(reported);
  expect(sets.observed()).toEqual([]);
});

test('a provider has ended a peering when the namespaces that it gave are gone, too', async () => {
  const { sets, settle, names, give } = start();
  const provider = { ...set('pe_1', 1, 'present'), role: 'provider' as const, objects: manifests.slice(0, 1) };
  sets.accept(answer(1, provider));
  await settle();
  await give('shop-milan', `${namespace}/rome`);
  await give('of-another', 'liqo-tenant-turin/rome');
  expect(sets.observed()[0]?.objects.map(({ name }) => name)).toEqual([namespace]);
  sets.accept(answer(2, { ...provider, revision: 2, state: 'absent', objects: [] }));
  expect(sets.observed()[0]?.objects.map(({ name }) => name)).toEqual([namespace, 'shop-milan']);
  await settle();
  expect(names()).toEqual(['Namespace|of-another']);
});

describe('a link that two opposite peerings share', () => {
  const apiVersion = 'networking.liqo.io/v1beta1';
  const labels = { 'liqo.io/remote-cluster-id': 'milan' };
  const metadata = { name: 'milan', namespace, labels };
  const gateway = (mtu: number): KubeManifest => ({
    apiVersion,
    kind: 'GatewayServer',
    metadata,
    spec: { mtu, endpoint: { port: 51_840, serviceType: 'NodePort' } },
  });
  const key: KubeManifest = {
    apiVersion,
    kind: 'PublicKey',
    metadata,
    spec: { publicKey: Buffer.alloc(32, 7).toString('base64') },
  };
  const linked = (peering: string, revision: number, role: DesiredSet['role'], mtu: number): DesiredSet => ({
    ...set(peering, revision, 'present'),
    role,
    objects: [manifests[0] ?? expect.fail(), gateway(mtu), key],
  });
  const ended = (peering: string, revision: number, role: DesiredSet['role']): DesiredSet => ({
    ...set(peering, revision, 'absent'),
    role,
  });

  test('is as the newer set wants it, stays when either ends, and goes with the last', async () => {
    const { sets, settle, names, object } = start();
    const spec = () => (object('GatewayServer', `${namespace}/milan`) as { spec?: object } | undefined)?.spec;
    sets.accept(answer(1, linked('pe_1', 1, 'consumer', 1400)));
    sets.accept(answer(2, linked('pe_2', 2, 'provider', 1340)));
    await settle();
    expect(spec()).toMatchObject({ mtu: 1340 });
    sets.accept(answer(3, ended('pe_2', 3, 'provider')));
    await settle();
    expect(names()).toHaveLength(3);
    expect(spec()).toMatchObject({ mtu: 1400 });
    expect(object('PublicKey', `${namespace}/milan`)?.metadata.labels).toMatchObject({ 'isthmus.dev/peering': 'pe_1' });
    sets.accept(answer(4, ended('pe_1', 4, 'consumer')));
    await settle();
    expect(names()).toEqual([]);
  });

  test('is not held up by a newer peering of the pair that waits for consent', async () => {
    let isAgreed = false;
    const refused = { code: 'consent_missing', message: 'waits for an administrator' } as const;
    const trust: PeerTrust = {
      ...believing,
      check: async ({ role }) => (role === 'provider' && !isAgreed ? refused : undefined),
    };
    const { sets, passOnce, object } = start(undefined, trust);
    const spec = () => (object('GatewayServer', `${namespace}/milan`) as { spec?: object } | undefined)?.spec;
    sets.accept(answer(1, linked('pe_1', 1, 'consumer', 1400), linked('pe_2', 2, 'provider', 1340)));
    await passOnce();
    expect(spec()).toMatchObject({ mtu: 1400 });
    isAgreed = true;
    await passOnce();
    expect(spec()).toMatchObject({ mtu: 1340 });
  });

  test('is refused where it reaches too far, and the report says so', async () => {
    const { sets, settle, names } = start();
    const hostile = { ...gateway(1340), spec: { mtu: 1340, secretRef: { name: 'admin-token' } } };
    sets.accept(answer(1, { ...linked('pe_1', 1, 'consumer', 1340), objects: [...manifests.slice(0, 1), hostile] }));
    await settle();
    expect(names()).toEqual([`Namespace|${namespace}`]);
    expect(sets.observed()[0]?.refusals).toEqual([
      {
        object: `GatewayServer/${namespace}/milan`,
        code: 'object_not_allowed',
        message: 'spec.secretRef is not accepted from a broker on a GatewayServer',
      },
    ]);
    // What was refused is no reason why the end takes its time.
    sets.accept(answer(2, set('pe_1', 2, 'absent')));
    await sets.reconcile('pe_1', signal);
    expect(sets.observed()[0]).toMatchObject({ appliedRevision: 1, refusals: [] });
  });
});

describe('what no broker applied', () => {
  const byHand = (kind: 'Namespace' | 'ResourceSlice', metadata: object) =>
    ({ apiVersion: kind === 'Namespace' ? 'v1' : 'authentication.liqo.io/v1beta1', kind, metadata }) as KubeObject;
  const put = (world: ReturnType<typeof rememberingCluster>, type: ResourceType, object: KubeObject) =>
    world.cluster.api.apply(type, object, { fieldManager: 'kubectl' });

  test('is not taken over by a peering of the same peer, which says so, and outlives its end', async () => {
    const world = rememberingCluster();
    await put(world, namespaces, byHand('Namespace', { name: namespace, labels: { team: 'x' } }));
    const { sets, settle, names, object } = start(world);
    sets.accept(answer(1, set('pe_1', 1, 'present')));
    await settle();
    expect(object('Namespace', namespace)?.metadata.labels).toEqual({ team: 'x' });
    expect(sets.observed()[0]?.refusals).toEqual([
      {
        object: `Namespace//${namespace}`,
        code: 'object_not_allowed',
        message: expect.stringContaining('was not made by a broker'),
      },
    ]);
    sets.accept(answer(2, set('pe_1', 2, 'absent')));
    await settle();
    expect(names()).toEqual([`Namespace|${namespace}`]);
  });

  test('stays when a broker ends a peering with that peer which it never made', async () => {
    const world = rememberingCluster();
    await put(world, namespaces, byHand('Namespace', { name: namespace }));
    const replica = { 'liqo.io/replication': 'true', 'liqo.io/remoteID': 'milan' };
    await put(world, resourceSlices, byHand('ResourceSlice', { name: 'milan', namespace, labels: replica }));
    const { sets, settle, names } = start(world);
    sets.accept(answer(1, { ...set('pe_1', 1, 'absent'), peerDead: true }));
    await settle();
    expect(names()).toEqual([`Namespace|${namespace}`, `ResourceSlice|${namespace}/milan`]);
    expect(sets.observed()[0]).toMatchObject({ objects: [], appliedRevision: 1 });
  });

  test('is not removed for having the label of a peering, and does not hold up the end', async () => {
    const world = rememberingCluster();
    const { sets, settle, names } = start(world);
    sets.accept(answer(1, set('pe_1', 1, 'present')));
    await settle();
    const labels = { 'isthmus.dev/peering': 'pe_1' };
    await put(world, resourceSlices, byHand('ResourceSlice', { name: 'of-a-guest', namespace, labels }));
    sets.accept(answer(2, set('pe_1', 2, 'absent')));
    await settle();
    expect(names()).toEqual([`ResourceSlice|${namespace}/of-a-guest`]);
    expect(sets.observed()[0]).toMatchObject({ objects: [], appliedRevision: 2 });
  });
});
