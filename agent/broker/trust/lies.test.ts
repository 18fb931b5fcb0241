/**
 * A broker that answers anything it likes, against the agent's whole path of desired sets: 10,000 generated lies. Rome has agreed to milan by the
 * lock, has a peering with naples by hand, and knows no other cluster. The lies are built of what such a broker has: every announcement that honest
 * clusters ever signed, its own keys, and manifests of honest or foreign values, whole or changed anywhere.
 */
import { createPrivateKey, createPublicKey, type KeyObject, sign } from 'node:crypto';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { fingerprintOf, generateClusterKeys } from '#agent/pki/cluster-keys.ts';
import type { Cache } from '#kube/model/types.ts';
import type { KubeObject } from '#shared/domain/kube-object.ts';
import { lockText } from '#shared/domain/peering-lock.ts';
import { silentLog } from '#shared/ports/log.ts';
import { systemClock } from '#shared/ports/system-clock.ts';
import { peeringPolicies } from '#shared/schema/isthmus/peering-policy.ts';
import type { ClusterFacts, DesiredSet, KubeManifest } from '#shared/schema/protocol/agent-protocol.ts';
import { RememberingCluster } from '#test/harness/remembering-cluster.ts';
import { createDesiredState } from '../sync/apply-desired.ts';
import { channelCaches } from '../sync/watched-objects.ts';
import { type Claims, caHashOf, signAnnouncement } from './announcement.ts';
import { createPeerTrust } from './peer-trust.ts';

const signal = new AbortController().signal;
const lies = 10_000;
const perWorld = 8;

interface Party {
  readonly id: string;
  readonly tenant: string;
  readonly privateKey: KeyObject;
  readonly pem: string;
}
function party(id: string, tenant: string): Party {
  const keys = generateClusterKeys();
  return { id, tenant, privateKey: createPrivateKey(keys.privateKey), pem: keys.publicKey };
}
const [rome, milan, turin, thief] = [
  party('rome', 'acme'),
  party('milan', 'acme'),
  party('turin', 'globex'),
  party('thief', 'acme'),
];
const admin = generateClusterKeys();
const derOf = (key: KeyObject) => createPublicKey(key).export({ type: 'spki', format: 'der' }).toString('base64');
const adminKey = createPrivateKey(admin.privateKey);
const lockFor = ({ id, tenant, privateKey }: Party) => {
  const text = lockText({ tenant, clusterId: id, fingerprint: fingerprintOf(createPublicKey(privateKey)) });
  return { key: derOf(adminKey), signature: sign(null, Buffer.from(text), adminKey).toString('base64') };
};

/** What is in documents about a cluster. Each version of an honest one differs in all of them. */
interface Facts {
  readonly apiServer: string;
  readonly ca: string;
  readonly pod: string;
  readonly external: string;
  readonly wireGuardKey: string;
}
const factsOf = (seed: number): Facts => ({
  apiServer: `https://192.0.2.${seed}:6443`,
  ca: `CA ${seed}`,
  pod: `10.${seed}.0.0/16`,
  external: `10.${seed + 100}.0.0/16`,
  wireGuardKey: Buffer.alloc(32, seed).toString('base64'),
});
const honest = [1, 2, 3].map(factsOf);
const foreign = [50, 51].map(factsOf);

const claimsOf = (by: Party, receiver: string, facts: Facts, at: number): Claims => ({
  purpose: 'peering',
  sender: by.id,
  receiver,
  tenant: by.tenant,
  at,
  key: derOf(by.privateKey),
  // Turin's administrator is another one.
  ...(by === milan || by === rome ? { locks: [lockFor(by)] } : {}),
  apiServer: facts.apiServer,
  caHash: caHashOf(facts.ca),
  network: { pod: [facts.pod], external: [facts.external] },
  wireGuardKey: facts.wireGuardKey,
});
const ofMilan = honest.map((facts, i) => signAnnouncement(claimsOf(milan, 'rome', facts, i + 1), milan.privateKey));
/** All that honest clusters ever signed. */
const genuine = [
  ...ofMilan,
  signAnnouncement(claimsOf(milan, 'turin', factsOf(4), 4), milan.privateKey),
  signAnnouncement(claimsOf(turin, 'rome', factsOf(5), 5), turin.privateKey),
  signAnnouncement(claimsOf(rome, 'milan', factsOf(6), 6), rome.privateKey),
];

const anyFacts = fc.constantFrom(...honest, ...foreign);
const names = fc.constantFrom('milan', 'milan', 'milan', 'turin', 'thief', 'naples', 'rome');
const tenants = fc.constantFrom('acme', 'globex', 'evil');
/** By the broker's own key, with any claims, the administrator's signature for another cluster among them. */
const forged = fc
  .record({
    sender: names,
    receiver: fc.constantFrom('rome', 'milan'),
    tenant: tenants,
    facts: anyFacts,
    at: fc.nat(10_000_000_000_000),
    lock: fc.constantFrom(undefined, lockFor(milan), lockFor(rome), {
      key: derOf(thief.privateKey),
      signature: 'AAAA',
    }),
    key: fc.constantFrom(derOf(thief.privateKey), derOf(milan.privateKey)),
  })
  .map(({ facts, lock, key, ...claims }) =>
    signAnnouncement(
      {
        ...claimsOf(thief, 'rome', facts, claims.at),
        ...claims,
        key,
        ...(lock === undefined ? {} : { locks: [lock] }),
      },
      thief.privateKey,
    ),
  );
const spliced = fc.tuple(fc.constantFrom(...genuine), fc.constantFrom(...genuine), fc.nat(2)).map(([a, b, at]) =>
  a
    .split('.')
    .map((part, i) => (i === at ? b.split('.')[i] : part))
    .join('.'),
);
const edited = fc.tuple(fc.constantFrom(...genuine), anyFacts).map(([text, facts]) => {
  const [head, body = '', signature] = text.split('.');
  const claims = JSON.parse(Buffer.from(body, 'base64url').toString());
  const changed = { ...claims, apiServer: facts.apiServer, wireGuardKey: facts.wireGuardKey, at: claims.at + 1 };
  return `${head}.${Buffer.from(JSON.stringify(changed)).toString('base64url')}.${signature}`;
});
const anyAnnouncement = fc.oneof(
  { weight: 5, arbitrary: fc.constantFrom<string | undefined>(...genuine) },
  { weight: 3, arbitrary: forged },
  { weight: 2, arbitrary: spliced },
  { weight: 2, arbitrary: edited },
  { weight: 1, arbitrary: fc.constant(undefined) },
  { weight: 1, arbitrary: fc.string() },
);

const networking = 'networking.liqo.io/v1beta1';
const authentication = 'authentication.liqo.io/v1beta1';
const base64 = (text: string) => Buffer.from(text).toString('base64');

/** A whole set as an honest broker would send it, about the peer of that name. */
function manifestsFor(role: DesiredSet['role'], peer: string, facts: Facts, pem: string): KubeManifest[] {
  const namespace = `liqo-tenant-${peer}`;
  const labels = { 'liqo.io/remote-cluster-id': peer };
  const at = { name: peer, namespace, labels };
  const spec = (kind: string, value: object, more: object = {}, apiVersion = networking) => ({
    apiVersion,
    kind,
    metadata: { ...at, ...more },
    spec: value,
  });
  const link = [
    spec('Configuration', { remote: { cidr: { pod: [facts.pod], external: [facts.external] } } }),
    spec('PublicKey', { publicKey: facts.wireGuardKey }),
  ];
  const home = { apiVersion: 'v1', kind: 'Namespace', metadata: { name: namespace, labels } };
  if (role === 'provider') {
    const tenant = { clusterID: peer, publicKey: base64(pem), csr: 'Y3Ny', signature: 'c2ln' };
    return [home, ...link, spec('Tenant', tenant, {}, authentication)];
  }
  const authParams = { ca: base64(facts.ca), apiServer: facts.apiServer, signedCRT: 'Y3J0' };
  const identity = { clusterID: peer, type: 'ControlPlane', authParams, namespace: 'liqo-tenant-rome' };
  const slice = { class: 'default', providerClusterID: peer };
  const replicated = { labels: { ...labels, 'liqo.io/replication': 'true', 'liqo.io/remoteID': peer } };
  return [
    home,
    ...link,
    spec('ResourceSlice', slice, replicated, authentication),
    spec('Identity', identity, { name: `controlplane-${peer}` }, authentication),
  ];
}

/** Puts a value at some place inside a manifest. */
function changed(manifest: KubeManifest, path: readonly number[], value: unknown): KubeManifest {
  const copy = structuredClone(manifest);
  let here = copy as unknown as Record<string, unknown>;
  for (const step of path) {
    const keys = Object.keys(here);
    const key = keys[step % keys.length] ?? 'spec';
    const next = here[key];
    if (typeof next !== 'object' || next === null) {
      here[key] = value;
      return copy;
    }
    here = next as Record<string, unknown>;
  }
  here.injected = value;
  return copy;
}
const values = fc.constantFrom<unknown>(
  'turin',
  'kube-system',
  'liqo-tenant-naples',
  foreign[0]?.apiServer,
  foreign[0]?.wireGuardKey,
  base64(foreign[0]?.ca ?? ''),
  base64(thief.pem),
  'TolerateNoHandshake',
  'ResourceSlice',
  null,
  [],
  ['0.0.0.0/0'],
  { awsUserArn: 'x' },
);
const anyObjects = fc
  .record({
    role: fc.constantFrom('consumer' as const, 'provider' as const),
    of: names,
    facts: anyFacts,
    mixed: anyFacts,
    pem: fc.constantFrom(milan.pem, milan.pem, thief.pem),
    edits: fc.array(fc.tuple(fc.nat(5), fc.array(fc.nat(5), { minLength: 1, maxLength: 5 }), values), { maxLength: 2 }),
    kept: fc.nat(63),
  })
  .map(({ role, of, facts, mixed, pem, edits, kept }) => {
    const [one, other] = [manifestsFor(role, of, facts, pem), manifestsFor(role, of, mixed, pem)];
    const objects = one.map((manifest, i) => ((kept >> i) & 1 ? manifest : (other[i] ?? manifest)));
    for (const [at, path, value] of edits) {
      const manifest = objects[at % objects.length];
      if (manifest !== undefined) objects[at % objects.length] = changed(manifest, path, value);
    }
    return { role, of, objects };
  });
const anyLie = fc.record({
  what: anyObjects,
  peer: fc.option(names, { nil: undefined }),
  peerTenant: fc.option(tenants, { nil: undefined }),
  announcement: anyAnnouncement,
  peering: fc.constantFrom('pe_1', 'pe_2', 'pe_3'),
  absent: fc.nat(5).map((n) => n === 0),
  peerDead: fc.boolean(),
});

const emptyFacts = {
  apiServerUrl: 'https://192.0.2.99:6443',
  apiServerCa: 'CA',
  policies: [],
} as unknown as ClusterFacts;

function world() {
  const cluster = new RememberingCluster();
  const side = { enabled: true, autoAccept: true, peers: ['*'], maxResourcesPerPeer: {}, classes: ['default'] };
  const isthmus = (kind: string, name: string, spec: object) =>
    cluster.put({ apiVersion: 'isthmus.dev/v1alpha1', kind, metadata: { name }, spec } as KubeObject);
  isthmus('PeeringPolicy', 'default', { tenants: ['*'], asConsumer: side, asProvider: side });
  isthmus('PeeringLock', 'acme', { keys: [{ key: derOf(adminKey) }] });
  const byHand = [
    ...manifestsFor('consumer', 'naples', factsOf(9), milan.pem),
    ...manifestsFor('provider', 'naples', factsOf(9), milan.pem).slice(-1),
  ] as unknown as KubeObject[];
  for (const object of byHand) cluster.put(object);
  const handMade = () =>
    cluster.objects.filter(
      ({ kind, metadata }) => kind !== 'TrustedPeer' && `${metadata.namespace}${metadata.name}`.includes('naples'),
    );
  const caches = channelCaches(cluster.cluster.caches);
  const trust = createPeerTrust({
    cluster: cluster.cluster,
    clusterId: 'rome',
    tenant: 'acme',
    privateKey: rome.privateKey,
    clock: systemClock,
    facts: () => emptyFacts,
  });
  const sets = createDesiredState({
    cluster: cluster.cluster,
    caches,
    policies: cluster.cluster.caches.cache(peeringPolicies) as Cache<never>,
    trust,
    clusterId: 'rome',
    tenant: 'acme',
    log: silentLog,
    onProgress: () => undefined,
  });
  let revision = 0;
  async function tell(set: Omit<DesiredSet, 'revision'>): Promise<void> {
    revision += 1;
    sets.accept({ revision, full: false, sets: [{ ...set, revision }], answers: [] });
    for (let pass = 0; pass < 3; pass += 1) await sets.reconcile(set.peering, signal);
  }
  return { cluster, sets, tell, handMade };
}
type World = ReturnType<typeof world>;

const brokers = new Set([
  'Namespace',
  'Tenant',
  'Identity',
  'ResourceSlice',
  'Configuration',
  'PublicKey',
  'Secret',
  'GatewayServer',
  'GatewayClient',
]);
/** Which version of milan's words each object has; fails for any word that milan did not say. */
function versionsIn({ cluster }: World): number[] {
  const of = (kind: string) =>
    cluster.objects.filter(
      (object) => object.kind === kind && !JSON.stringify(object.metadata).includes('naples'),
    ) as (KubeObject & {
      spec: Record<string, unknown>;
    })[];
  for (const { kind, metadata } of cluster.objects) {
    if (!brokers.has(kind) || JSON.stringify(metadata).includes('naples')) continue;
    expect(kind === 'Namespace' ? metadata.name : metadata.namespace).toBe('liqo-tenant-milan');
  }
  const versions: number[] = [];
  const isMilans = (found: unknown, said: (facts: Facts) => unknown) => {
    const at = honest.findIndex((facts) => JSON.stringify(said(facts)) === JSON.stringify(found));
    expect({ found, at }).not.toEqual({ found, at: -1 });
    versions.push(at);
  };
  for (const { spec } of of('PublicKey')) isMilans(spec.publicKey, ({ wireGuardKey }) => wireGuardKey);
  for (const { spec } of of('Configuration'))
    isMilans(spec.remote, ({ pod, external }) => ({ cidr: { pod: [pod], external: [external] } }));
  for (const { spec } of of('Identity')) {
    const { apiServer, ca, ...rest } = spec.authParams as Record<string, string>;
    isMilans([apiServer, ca], (facts) => [facts.apiServer, base64(facts.ca)]);
    expect(Object.keys(rest)).not.toContain('awsConfig');
    expect([spec.clusterID ?? 'milan', spec.namespace, rest.proxyURL ?? '']).toEqual(['milan', 'liqo-tenant-rome', '']);
  }
  for (const { spec } of of('Tenant')) {
    expect(spec.publicKey).toBe(base64(milan.pem));
    expect([spec.clusterID, spec.authzPolicy ?? 'KeysExchange']).toEqual(['milan', 'KeysExchange']);
  }
  return versions;
}

const shown = (set: object) => JSON.stringify(set).slice(0, 2_000);

describe('a broker that lies', () => {
  test(`gets nothing of a stranger into the cluster by ${lies} lies, and the peer that was agreed to still gets through`, async () => {
    let told = 0;
    let through = 0;
    await fc.assert(
      fc.asyncProperty(fc.array(anyLie, { minLength: perWorld, maxLength: perWorld }), async (some) => {
        const here = world();
        const before = JSON.stringify(here.handMade());
        for (const { what, peer = what.of, peerTenant, absent, ...rest } of some) {
          told += 1;
          const { announcement, ...set } = rest;
          const lie = {
            ...set,
            role: what.role,
            peer,
            ...(peerTenant === undefined ? {} : { peerTenant }),
            ...(announcement === undefined ? {} : { announcement }),
            state: absent ? ('absent' as const) : ('present' as const),
            objects: absent ? [] : what.objects,
          };
          await here.tell(lie);
          const versions = versionsIn(here);
          through += versions.length > 0 ? 1 : 0;
          expect(JSON.stringify(here.handMade()), shown(lie)).toBe(before);
        }
        const newest = honest.length - 1;
        const facts = honest[newest] ?? expect.fail();
        for (const peering of ['pe_1', 'pe_2', 'pe_3'])
          await here.tell({ peering, role: 'consumer', peer: 'milan', state: 'absent', peerDead: false, objects: [] });
        await here.tell({
          peering: 'pe_honest',
          role: 'consumer',
          peer: 'milan',
          state: 'present',
          peerDead: false,
          announcement: ofMilan[newest] ?? '',
          objects: manifestsFor('consumer', 'milan', facts, milan.pem),
        });
        expect(here.sets.observed().find(({ peering }) => peering === 'pe_honest')?.refusals).toEqual([]);
        expect(versionsIn(here)).toEqual([newest, newest, newest]);
      }),
      { numRuns: lies / perWorld },
    );
    expect(told).toBeGreaterThanOrEqual(lies);
    // Lies that happen to be the truth were among them: the generator reaches the inside.
    expect(through).toBeGreaterThan(lies / 1_000);
  }, 600_000);

  test('cannot bring back what milan said before', async () => {
    const here = world();
    const say = (version: number, facts = honest[version] ?? expect.fail()) =>
      here.tell({
        peering: 'pe_1',
        role: 'consumer',
        peer: 'milan',
        state: 'present',
        peerDead: false,
        announcement: ofMilan[version] ?? '',
        objects: manifestsFor('consumer', 'milan', facts, milan.pem),
      });
    await say(1);
    expect(versionsIn(here)).toEqual([1, 1, 1]);
    await say(0);
    expect(versionsIn(here)).toEqual([1, 1, 1]);
    expect(here.sets.observed()[0]?.refusals[0]?.code).toBe('announcement_refused');
    await say(2);
    expect(versionsIn(here)).toEqual([2, 2, 2]);
  });
});
