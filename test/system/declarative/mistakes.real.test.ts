/** One mistake at a time in manifests that are right otherwise: it is explained on the object that is wrong, and how soon is printed (5 s are asked). */
import { afterAll, beforeAll, expect, test } from 'vitest';
import { peeringManifests } from '#cli/gitops/manifests.ts';
import { createGatewayKeys } from '#cli/gitops/wireguard-keys.ts';
import { events, namespaces } from '#shared/domain/core-kinds.ts';
import { type KubeObject, refOf } from '#shared/domain/kube-object.ts';
import { eventually } from '#test/harness/eventually.ts';
import { type DeclaredCluster, startCluster } from './cluster.ts';
import { applyAll, typeOf } from './orders.ts';

let rome: DeclaredCluster;
beforeAll(async () => {
  rome = await startCluster({
    id: 'rome',
    podCidr: '10.200.0.0/16',
    externalCidr: '10.70.0.0/16',
    nodeAddress: '192.0.2.11',
  });
}, 900_000);
afterAll(async () => await rome?.stop());

const kubeconfig = (server: string) =>
  JSON.stringify({
    apiVersion: 'v1',
    kind: 'Config',
    clusters: [{ name: 'c', cluster: { server } }],
    users: [{ name: 'u', user: { token: 'wrong' } }],
    contexts: [{ name: 'c', context: { cluster: 'c', user: 'u' } }],
    'current-context': 'c',
  });

type Json = Record<string, unknown>;
type Change = (object: KubeObject & { spec: Json; data: Record<string, string>; roleRef: { name: string } }) => void;

/** A peering of its own for each mistake, rome being on both sides of it. */
function halves(peer: string) {
  return peeringManifests({
    consumer: { id: peer, podCidrs: ['10.201.0.0/16'], externalCidrs: ['10.71.0.0/16'] },
    provider: { id: peer, podCidrs: ['10.202.0.0/16'], externalCidrs: ['10.72.0.0/16'] },
    link: {
      server: 'provider',
      serviceType: 'NodePort',
      addresses: ['192.0.2.99'],
      mtu: 1_340,
      keys: { consumer: createGatewayKeys(), provider: createGatewayKeys() },
    },
    kubeconfig: kubeconfig('https://127.0.0.1:1'),
    user: peer,
    slice: { name: peer, class: 'default', resources: { cpu: '1' } },
  });
}

interface Mistake {
  readonly what: string;
  readonly side: 'consumer' | 'provider';
  /** `KIND NAME`; the name of the peer is PEER. */
  readonly on: string;
  readonly change: Change;
  readonly says: RegExp;
}

const dropLabel =
  (key: string, misspelt?: string): Change =>
  ({ metadata }) => {
    const { [key]: value = '', ...rest } = metadata.labels ?? {};
    metadata.labels = { ...rest, ...(misspelt === undefined ? {} : { [misspelt]: value }) };
  };

const mistakes: readonly Mistake[] = [
  {
    what: 'a misspelt label of the namespace',
    side: 'provider',
    on: 'Namespace liqo-tenant-PEER',
    change: dropLabel('liqo.io/tenant-namespace', 'liqo.io/tenant-namespaces'),
    says: /NoTenantNamespace.*misspelling/,
  },
  {
    what: 'a misspelt label of the credentials',
    side: 'consumer',
    on: 'Secret cplane-secret',
    change: dropLabel('liqo.io/identity-type', 'liqo.io/identitytype'),
    says: /NoIdentityType.*misspelling/,
  },
  {
    what: 'a PublicKey that no gateway takes',
    side: 'provider',
    on: 'PublicKey gw-publickey',
    change: dropLabel('networking.liqo.io/gateway-resource'),
    says: /NoGatewayResource/,
  },
  {
    what: 'a Configuration without a peer',
    side: 'provider',
    on: 'Configuration PEER',
    change: dropLabel('liqo.io/remote-cluster-id'),
    says: /MissingClusterID/,
  },
  {
    what: 'a public range',
    side: 'provider',
    on: 'Configuration PEER',
    change: ({ spec }) =>
      Object.assign(spec, { remote: { cidr: { pod: ['8.8.0.0/16'], external: ['10.71.0.0/16'] } } }),
    says: /RangeRefused.*8\.8\.0\.0/,
  },
  {
    what: 'keys that do not belong together',
    side: 'provider',
    on: 'Secret gw-keys',
    change: ({ data }) => Object.assign(data, { publicKey: createGatewayKeys().publicKey }),
    says: /SecretMalformed.*does not belong/,
  },
  {
    what: 'a Secret that is not there',
    side: 'provider',
    on: 'GatewayServer server',
    change: ({ spec }) => Object.assign(spec, { secretRef: { name: 'gw-keyss' } }),
    says: /SecretMissing.*gw-keyss/,
  },
  {
    what: 'an object in the namespace of another peer',
    side: 'provider',
    on: 'GatewayServer server',
    change: ({ metadata }) => Object.assign(metadata.labels ?? {}, { 'liqo.io/remote-cluster-id': 'elsewhere' }),
    says: /tenant namespace of elsewhere/,
  },
  {
    what: 'a role that is none',
    side: 'provider',
    on: 'RoleBinding liqo-binding-liqo-remote-controlplane',
    change: ({ roleRef }) => Object.assign(roleRef, { name: 'liqo-remote-controlpane' }),
    says: /NoSuchRole.*liqo-remote-controlplane/,
  },
  {
    what: 'credentials for an address without a server',
    side: 'consumer',
    on: 'Secret cplane-secret',
    change: () => undefined,
    says: /ProviderUnreachable.*127\.0\.0\.1:1/,
  },
  {
    what: 'credentials that are refused',
    side: 'consumer',
    on: 'Secret cplane-secret',
    change: ({ data }) => {
      const config = JSON.parse(kubeconfig(rome.server.url)) as { clusters: { cluster: Json }[] };
      const authority = Buffer.from(rome.server.ca).toString('base64');
      for (const { cluster } of config.clusters) cluster['certificate-authority-data'] = authority;
      data.kubeconfig = Buffer.from(JSON.stringify(config)).toString('base64');
    },
    says: /CredentialsRefused/,
  },
  {
    what: 'credentials without the namespace at the provider',
    side: 'consumer',
    on: 'Secret cplane-secret',
    change: ({ metadata }) => Object.assign(metadata, { annotations: {} }),
    says: /remote-tenant-namespace/,
  },
  {
    what: 'a slice for another provider',
    side: 'consumer',
    on: 'ResourceSlice PEER',
    change: ({ spec }) => Object.assign(spec, { providerClusterID: 'elsewhere' }),
    says: /ProviderMismatch.*elsewhere/,
  },
];

/** Conditions and Events of an object, one line each. */
async function saidOf(object: KubeObject): Promise<string[]> {
  const found = (await rome.api.get(typeOf(object), refOf(object))) as KubeObject & {
    status?: { conditions?: { reason?: string; message?: string }[] };
  };
  const conditions = (found.status?.conditions ?? []).map(({ reason, message }) => `${reason} ${message}`);
  const all = await rome.api.list(events);
  const own = all.filter((event) => (event.regarding as { uid?: string } | undefined)?.uid === found.metadata.uid);
  return [...conditions, ...own.map(({ reason, note }) => `${reason} ${note}`)];
}

const explainedAfter: number[] = [];

test.each(mistakes)('$what is explained', async ({ side, on, change, says }) => {
  const peer = `peer-${mistakes.findIndex((one) => one.change === change)}`;
  const half = halves(peer)[side];
  const objects = structuredClone([...half.objects, ...half.secrets]) as KubeObject[];
  const wrong = objects.find(({ kind, metadata }) => `${kind} ${metadata.name}` === on.replace('PEER', peer));
  if (wrong === undefined) throw new Error(`no ${on}`);
  change(wrong as Parameters<Change>[0]);
  await applyAll(rome.api, objects);
  const began = performance.now();
  await eventually(`${on} to say ${says}`, async () => {
    const output = await saidOf(wrong);
    if (!output.some((line) => says.test(line))) throw new Error(output.join(' | '));
    return true;
  });
  const seconds = (performance.now() - began) / 1000;
  explainedAfter.push(seconds);
  console.log(`${on}: explained after ${seconds.toFixed(1)} s`);
  expect(await rome.api.delete(namespaces, { name: `liqo-tenant-${peer}` })).toBe(true);
});

test('each mistake is explained within 5 s, and can be deleted without obstacles', async () => {
  expect(explainedAfter, 'this test continues those before it: run the whole file, without -t').toHaveLength(
    mistakes.length,
  );
  // One that came later had a machine busy with other things: the others tell.
  const sorted = explainedAfter.toSorted((a, b) => a - b);
  expect(sorted[Math.floor(sorted.length * 0.75)]).toBeLessThan(5);
  await eventually(
    'all the namespaces to be gone',
    async () => {
      const left = await rome.api.list(namespaces, { labelSelector: 'liqo.io/remote-cluster-id' });
      expect(left.map(({ metadata }) => metadata.name)).toEqual([]);
      return true;
    },
    { withinMs: 60_000, everyMs: 500 },
  );
});

test('a key of the wrong length is refused at once', async () => {
  const { objects } = halves('short').provider;
  const [namespace, key] = [objects[0], objects.find(({ kind }) => kind === 'PublicKey')] as [KubeObject, KubeObject];
  await applyAll(rome.api, [namespace]);
  const short = { ...key, spec: { publicKey: 'AAAA' } };
  await expect(applyAll(rome.api, [short as KubeObject])).rejects.toMatchObject({
    code: 'kube_invalid',
    message: expect.stringContaining('must be 32 bytes'),
  });
});
