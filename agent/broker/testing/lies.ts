/**
 * What a broker in an attacker's hands has, and the lies that it can make of it: every announcement that honest clusters ever signed, its own keys,
 * and manifests of honest or foreign values, whole or changed anywhere. Told to rome, which its administrator joined together with milan.
 */
import { createPrivateKey, createPublicKey, type KeyObject, sign } from 'node:crypto';
import fc from 'fast-check';
import { fingerprintOf, generateClusterKeys } from '#agent/pki/cluster-keys.ts';
import { lockText } from '#shared/domain/peering-lock.ts';
import type { PeeringLock } from '#shared/schema/isthmus/peering-lock.ts';
import type { DesiredSet, KubeManifest } from '#shared/schema/protocol/agent-protocol.ts';
import { type Claims, caHashOf, signAnnouncement } from '../trust/announcement.ts';

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
export const rome = party('rome', 'acme');
export const milan = party('milan', 'acme');
const turin = party('turin', 'globex');
const thief = party('thief', 'acme');
const admin = generateClusterKeys();
const derOf = (key: KeyObject) => createPublicKey(key).export({ type: 'spki', format: 'der' }).toString('base64');
const adminKey = createPrivateKey(admin.privateKey);
const lockFor = ({ id, tenant, privateKey }: Party) => {
  const at = 1;
  const text = lockText({ tenant, clusterId: id, fingerprint: fingerprintOf(createPublicKey(privateKey)), at });
  return { key: derOf(adminKey), at, signature: sign(null, Buffer.from(text), adminKey).toString('base64') };
};

/** What is in documents about a cluster. Each version of an honest one differs in all of them. */
interface Facts {
  readonly apiServer: string;
  readonly ca: string;
  readonly pod: string;
  readonly external: string;
  readonly wireGuardKey: string;
}
export const factsOf = (seed: number): Facts => ({
  apiServer: `https://192.0.2.${seed}:6443`,
  ca: `CA ${seed}`,
  pod: `10.${seed}.0.0/16`,
  external: `10.${seed + 100}.0.0/16`,
  wireGuardKey: Buffer.alloc(32, seed).toString('base64'),
});
export const honest = [1, 2, 3].map(factsOf);
export const foreign = [50, 51].map(factsOf);

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
      at: 2,
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
export const base64 = (text: string) => Buffer.from(text).toString('base64');

/** A whole set as an honest broker would send it, about the peer of that name. */
export function manifestsFor(role: DesiredSet['role'], peer: string, facts: Facts, pem: string): KubeManifest[] {
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
const anyPart = fc.record({
  what: anyObjects,
  peer: fc.option(names, { nil: undefined }),
  peerTenant: fc.option(tenants, { nil: undefined }),
  announcement: anyAnnouncement,
  peering: fc.constantFrom('pe_1', 'pe_2', 'pe_3'),
  absent: fc.nat(5).map((n) => n === 0),
  peerDead: fc.boolean(),
});

/** A desired set without its revision. */
export const anyLie = anyPart.map(({ what, peer = what.of, peerTenant, announcement, absent, ...rest }) => ({
  ...rest,
  role: what.role,
  peer,
  ...(peerTenant === undefined ? {} : { peerTenant }),
  ...(announcement === undefined ? {} : { announcement }),
  state: absent ? ('absent' as const) : ('present' as const),
  objects: absent ? [] : what.objects,
}));

/** The truth, in the newest words of milan. */
export const truth = (
  peering: string,
  version = honest.length - 1,
  role: DesiredSet['role'] = 'consumer',
): Omit<DesiredSet, 'revision'> => ({
  peering,
  role,
  peer: 'milan',
  state: 'present',
  peerDead: false,
  announcement: ofMilan[version] ?? '',
  objects: manifestsFor(role, 'milan', honest[version] ?? factsOf(0), milan.pem),
});

/** The truth but for one value: every place of every spec, with what stands there in a manifest of another cluster, and some more. */
export function nearTruths(
  role: DesiredSet['role'],
): { readonly at: string; readonly set: Omit<DesiredSet, 'revision'> }[] {
  const whole = truth('pe_1', undefined, role);
  const other = manifestsFor(role, 'milan', foreign[0] ?? factsOf(0), thief.pem);
  const placesIn = (value: unknown, path: readonly string[] = []): (readonly string[])[] =>
    typeof value === 'object' && value !== null
      ? Object.entries(value).flatMap(([key, inner]) => placesIn(inner, [...path, key]))
      : [path];
  const valueAt = (object: unknown, path: readonly string[]): unknown =>
    path.reduce<unknown>((inner, key) => (inner as Record<string, unknown>)[key], object);
  return whole.objects.flatMap((manifest, i) =>
    placesIn(manifest.spec ?? {}, ['spec']).flatMap((path) =>
      [valueAt(other[i], path), foreign[0]?.apiServer, 'TolerateNoHandshake', 'thief'].map((value) => {
        const objects = structuredClone(whole.objects) as KubeManifest[];
        const inner = valueAt(objects[i], path.slice(0, -1)) as Record<string, unknown>;
        inner[path.at(-1) ?? ''] = value;
        return { at: `${manifest.kind} ${path.join('.')} = ${value}`, set: { ...whole, objects } };
      }),
    ),
  );
}

/** What `isthmus join` left in rome. */
export const lockOfRome: PeeringLock = {
  apiVersion: 'isthmus.dev/v1alpha1',
  kind: 'PeeringLock',
  metadata: { name: 'acme' },
  spec: { keys: [{ key: derOf(adminKey) }] },
};
