/**
 * A broker that lies, on a real API server with the controllers that would act on what it says: no credential is made for a cluster that was not
 * agreed to, no packet reaches one, and what was made by hand stays. The generated lies are those of `agent/broker/trust/lies.test.ts`, fewer.
 */

import type { AddressInfo } from 'node:net';
import { createServer, type Server } from 'node:net';
import fc from 'fast-check';
import { afterAll, beforeAll, expect, test } from 'vitest';
import type { DesiredState } from '#agent/broker/sync/apply-desired.ts';
import { createDesiredState } from '#agent/broker/sync/apply-desired.ts';
import { brokerCaches } from '#agent/broker/sync/watched-objects.ts';
import { claimant, presented } from '#agent/broker/testing/claimants.ts';
import {
  anyLie,
  factsOf,
  foreign,
  honest,
  lockOfRome,
  manifestsFor,
  milan,
  rome,
  truth,
} from '#agent/broker/testing/lies.ts';
import { createPeerTrust, type PeerTrustSource } from '#agent/broker/trust/peer-trust.ts';
import { namespaces, secrets } from '#shared/domain/core-kinds.ts';
import type { KubeObject, ResourceType } from '#shared/domain/kube-object.ts';
import { silentLog } from '#shared/ports/log.ts';
import { peeringLocks } from '#shared/schema/isthmus/peering-lock.ts';
import { type PeeringPolicy, peeringPolicies } from '#shared/schema/isthmus/peering-policy.ts';
import { trustedPeers } from '#shared/schema/isthmus/trusted-peer.ts';
import { identities } from '#shared/schema/liqo/identity.ts';
import { networkKinds } from '#shared/schema/liqo/network-resources.ts';
import { resourceSlices } from '#shared/schema/liqo/resource-slice.ts';
import { tenants } from '#shared/schema/liqo/tenant.ts';
import type { ClusterFacts, DesiredSet } from '#shared/schema/protocol/agent-protocol.ts';
import { eventually } from '#test/harness/eventually.ts';
import { inOrder } from '#test/harness/in-order.ts';
import { type More, type Pair, startPair } from '../peering/clusters.ts';

const lies = 120;
let pair: Pair;
let sets: DesiredState;
let trap: Server;
let visits = 0;
const signal = new AbortController().signal;
const byHand: readonly (readonly [ResourceType, string])[] = [
  [resourceSlices, 'naples'],
  [identities, 'controlplane-naples'],
  [networkKinds.configurations, 'naples'],
  [networkKinds.publicKeys, 'naples'],
];
const naples = { namespace: 'liqo-tenant-naples' };

/** The path of desired sets as the agent has it, without a connection to a broker: the test tells it what a broker would. */
const withSets: More = async ({ cluster, clusterId, clock }) => {
  if (clusterId !== 'rome') return [];
  const caches = brokerCaches(cluster.caches);
  const policies = cluster.caches.cache(peeringPolicies);
  const facts = { apiServerUrl: 'https://192.0.2.99:6443', apiServerCa: 'CA', policies: [] } as unknown as ClusterFacts;
  const { privateKey } = rome;
  const trust: PeerTrustSource = createPeerTrust({
    cluster,
    clusterId,
    tenant: 'acme',
    privateKey,
    clock,
    log: silentLog,
    facts: () => facts,
  });
  const log = silentLog;
  const onProgress = () => undefined;
  sets = createDesiredState({ cluster, caches, policies, trust, clusterId, tenant: 'acme', log, onProgress });
  await Promise.all([trust.ready(signal), policies.synced(signal), ...caches.all.map((cache) => cache.synced(signal))]);
  return [];
};

let revision = 0;
async function tell(set: Omit<DesiredSet, 'revision'>): Promise<void> {
  revision += 1;
  sets.accept({ revision, full: false, sets: [{ ...set, revision }], answers: [] });
  // A pass that the API server refuses is tried again by the agent's queue; here the next lie follows.
  for (let pass = 0; pass < 2; pass += 1) await sets.reconcile(set.peering, signal).catch(() => undefined);
}

// In this order: each test finds what the ones before it left.
inOrder('file');
beforeAll(async () => {
  trap = createServer((socket) => {
    visits += 1;
    socket.destroy();
  });
  await new Promise<void>((resolve) => trap.listen(0, '127.0.0.1', resolve));
  // Every lie that names another API server names this one.
  for (const facts of foreign)
    Object.assign(facts, { apiServer: `https://127.0.0.1:${(trap.address() as AddressInfo).port}` });
  pair = await startPair(withSets);
  const { api } = pair.consumer;
  const side = { enabled: true, autoAccept: true, peers: ['*'] };
  const spec = { asConsumer: side, asProvider: { ...side, maxResourcesPerPeer: {}, classes: ['default'] } };
  await api.create(peeringLocks, lockOfRome);
  await api.create(peeringPolicies, {
    apiVersion: 'isthmus.dev/v1alpha1',
    kind: 'PeeringPolicy',
    metadata: { name: 'default' },
    spec,
  } as unknown as PeeringPolicy);
  const types = new Map<string, ResourceType>([
    ['Namespace', namespaces],
    ...byHand.map(([type]) => [type.kind, type] as const),
  ]);
  for (const manifest of manifestsFor('consumer', 'naples', factsOf(9), milan.pem)) {
    const type = types.get(manifest.kind);
    if (type !== undefined) await api.create(type, manifest as unknown as KubeObject);
  }
}, 900_000);
afterAll(async () => {
  await pair?.stop();
  trap?.close();
});

async function strangers(): Promise<string[]> {
  const { api } = pair.consumer;
  const kinds = [identities, tenants, resourceSlices, networkKinds.configurations, networkKinds.publicKeys];
  const all = (await Promise.all(kinds.map((type) => api.list<KubeObject>(type as ResourceType)))).flat();
  const found = all.filter(({ metadata }) => metadata.namespace !== naples.namespace);
  const texts = honest.map((facts) => JSON.stringify(facts));
  const isMilans = (object: KubeObject): boolean => {
    const { kind, spec } = object as unknown as { kind: string; spec: Record<string, Record<string, string> & string> };
    if (kind === 'PublicKey') return texts.some((text) => text.includes(String(spec.publicKey)));
    if (kind === 'Configuration') return honest.some(({ pod }) => JSON.stringify(spec.remote).includes(pod));
    if (kind === 'Identity') return honest.some(({ apiServer }) => spec.authParams?.apiServer === apiServer);
    if (kind === 'Tenant') return String(spec.publicKey) === Buffer.from(milan.pem).toString('base64');
    return true;
  };
  return found
    .filter((object) => object.metadata.namespace !== 'liqo-tenant-milan' || !isMilans(object))
    .map(({ kind, metadata }) => `${kind} ${metadata.namespace}/${metadata.name}`);
}
const handMade = async (): Promise<readonly string[]> =>
  Promise.all(
    byHand.map(async ([type, name]) => {
      const found = await pair.consumer.api.get<KubeObject>(type, { ...naples, name });
      return `${type.kind} ${found?.metadata.uid} ${found?.metadata.labels?.['isthmus.dev/peering'] ?? 'unlabelled'}`;
    }),
  );

test(`${lies} lies bring no document of a stranger into the cluster, and touch nothing that was made by hand`, async () => {
  const before = await handMade();
  expect(before.join(' ')).not.toContain('undefined');
  await fc.assert(
    fc.asyncProperty(anyLie, async (lie) => {
      await tell(lie);
      expect(await strangers(), JSON.stringify(lie).slice(0, 2_000)).toEqual([]);
    }),
    { numRuns: lies, endOnFailure: true },
  );
  expect(await handMade()).toEqual(before);
  const tenantNamespaces = (await pair.consumer.api.list(namespaces)).map(({ metadata }) => metadata.name);
  expect(tenantNamespaces.filter((name) => name.startsWith('liqo-tenant-')).sort()).not.toContain('liqo-tenant-turin');
  expect(tenantNamespaces).not.toContain('liqo-tenant-thief');
}, 400_000);

test('the administrator finds each stranger that was presented, with why it is refused', async () => {
  await tell({ ...truth('pe_turin'), peer: 'turin', announcement: 'x' });
  const turin = await pair.consumer.api.get(trustedPeers, { name: 'turin' });
  expect(turin?.status?.conditions?.find(({ type }) => type === 'AsConsumer')).toMatchObject({
    type: 'AsConsumer',
    status: 'False',
    reason: 'AnnouncementRefused',
  });
  expect(turin?.status?.key).toBeUndefined();
});

test('the peer that was agreed to still gets through, and no other was ever spoken to', async () => {
  for (const peering of ['pe_1', 'pe_2', 'pe_3'])
    await tell({ peering, role: 'consumer', peer: 'milan', state: 'absent', peerDead: false, objects: [] });
  const ref = { namespace: 'liqo-tenant-milan', name: 'controlplane-milan' };
  await eventually(
    'the truth to be applied',
    async () => {
      await tell(truth('pe_honest'));
      const identity = await pair.consumer.api.get(identities, ref);
      return identity?.spec.authParams.apiServer === honest.at(-1)?.apiServer;
    },
    { withinMs: 60_000, everyMs: 500 },
  );
  expect((await pair.consumer.api.get(trustedPeers, { name: 'milan' }))?.status).toMatchObject({ trustedBy: 'Lock' });
  const kubeconfigs = (await pair.consumer.api.list(secrets)).filter(({ data }) => data?.kubeconfig !== undefined);
  const servers = kubeconfigs.map(({ data }) => Buffer.from(data?.kubeconfig ?? '', 'base64').toString());
  for (const text of servers) expect(text).not.toContain('127.0.0.1');
  expect(visits).toBe(0);
}, 120_000);

test('a first key that an administrator contradicts loses its credential, its link and its namespace, and the right one takes its place', async () => {
  const { api } = pair.consumer;
  const as = (set: Omit<DesiredSet, 'revision'>) => ({ ...set, peering: 'pe_first' });
  await tell({ ...truth('pe_honest'), state: 'absent', objects: [] });
  await eventually(
    'the end of the honest peering',
    async () => {
      await sets.reconcile('pe_honest', signal);
      return (await api.get(namespaces, { name: 'liqo-tenant-milan' })) === undefined;
    },
    { withinMs: 60_000, everyMs: 500 },
  );
  await api.delete(trustedPeers, { name: 'milan' });
  const policy = await api.get(peeringPolicies, { name: 'default' });
  await api.update(peeringPolicies, {
    ...policy,
    spec: { ...policy?.spec, trust: { firstKey: ['FirstUse'] } },
  } as PeeringPolicy);
  const [wrong, right] = [claimant(21), claimant(22)];
  const identity = () => api.get(identities, { namespace: 'liqo-tenant-milan', name: 'controlplane-milan' });
  const server = async () => (await identity())?.spec.authParams.apiServer;
  await eventually(
    'the words of the wrong one',
    async () => {
      await tell(as(presented(wrong, 'pe_first')));
      return (await server()) === wrong.facts.apiServer;
    },
    { withinMs: 60_000, everyMs: 500 },
  );
  const before = (await identity())?.metadata.uid;
  await api.mergePatch(trustedPeers, { name: 'milan' }, { spec: { fingerprint: right.fingerprint } });
  await eventually(
    'all of it to be taken back, while the broker goes on with the wrong one',
    async () => {
      await tell(as(presented(wrong, 'pe_first')));
      return (await api.get(namespaces, { name: 'liqo-tenant-milan' })) === undefined;
    },
    { withinMs: 60_000, everyMs: 500 },
  );
  expect(await identity()).toBeUndefined();
  const { status } = (await api.get(trustedPeers, { name: 'milan' })) ?? {};
  expect(status).toMatchObject({ revoked: [wrong.fingerprint] });
  expect(status?.conditions).toMatchObject([{ type: 'AsConsumer', status: 'False', reason: 'PeerKeyRefused' }]);
  await eventually(
    'the words of the right one',
    async () => {
      await tell(as(presented(right, 'pe_first')));
      return (await server()) === right.facts.apiServer;
    },
    { withinMs: 60_000, everyMs: 500 },
  );
  expect((await identity())?.metadata.uid).not.toBe(before);
  expect((await api.get(trustedPeers, { name: 'milan' }))?.status).toMatchObject({ trustedBy: 'Object' });
}, 240_000);
