import { describe, expect, test } from 'vitest';
import * as yaml from 'yaml';
import { allKinds } from '#shared/schema/all-kinds.ts';
import { kubeconfigText } from './kubeconfig.ts';
import { type PeeringPlan, peeringManifests } from './manifests.ts';

const plan: PeeringPlan = {
  consumer: { id: 'rome', podCidrs: ['10.200.0.0/16'], externalCidrs: ['10.70.0.0/16'] },
  provider: { id: 'milan', podCidrs: ['10.201.0.0/16'], externalCidrs: ['10.71.0.0/16'] },
  link: {
    server: 'provider',
    serviceType: 'NodePort',
    addresses: ['192.0.2.1'],
    nodePort: 30_742,
    mtu: 1_340,
    keys: {
      consumer: { privateKey: `${'A'.repeat(43)}=`, publicKey: `${'B'.repeat(43)}=` },
      provider: { privateKey: `${'C'.repeat(43)}=`, publicKey: `${'D'.repeat(43)}=` },
    },
  },
  kubeconfig: 'kubeconfig',
  user: 'rome',
  slice: { name: 'milan', class: 'default', resources: { cpu: '2' } },
};
const all = (of = plan) => {
  const { consumer, provider } = peeringManifests(of);
  return [...consumer.objects, ...consumer.secrets, ...provider.objects, ...provider.secrets];
};
const kinds = (half: 'consumer' | 'provider', of = plan) => {
  const { objects, secrets } = peeringManifests(of)[half];
  return [...objects, ...secrets].map(({ kind, metadata }) => `${kind} ${metadata.name}`);
};

describe('the manifests of a peering', () => {
  test('are these', () => {
    expect(kinds('consumer')).toEqual([
      'Namespace liqo-tenant-milan',
      'Configuration milan',
      'PublicKey gw-publickey',
      'GatewayClient client',
      'ResourceSlice milan',
      'Secret gw-keys',
      'Secret cplane-secret',
    ]);
    expect(kinds('provider')).toEqual([
      'Namespace liqo-tenant-rome',
      'Configuration rome',
      'PublicKey gw-publickey',
      'GatewayServer server',
      'Tenant rome',
      'RoleBinding liqo-binding-liqo-remote-controlplane',
      'Secret gw-keys',
    ]);
  });

  test('satisfy the schemas of their kinds', () => {
    for (const object of all()) {
      const kind = allKinds.find((one) => one.kind === object.kind);
      if (kind === undefined) continue;
      const { spec } = object as unknown as { spec: unknown };
      expect(kind.spec.safeParse(spec).error?.issues, object.kind).toBeUndefined();
    }
  });

  test('carry on each side the ID and the key of the other', () => {
    const { consumer, provider } = peeringManifests(plan);
    const key = (half: typeof consumer) => half.objects.find(({ kind }) => kind === 'PublicKey');
    expect(key(consumer)).toMatchObject({ spec: { publicKey: `${'D'.repeat(43)}=` } });
    expect(key(provider)).toMatchObject({ spec: { publicKey: `${'B'.repeat(43)}=` } });
    const peers = (half: typeof consumer) =>
      new Set([...half.objects, ...half.secrets].map(({ metadata }) => metadata.labels?.['liqo.io/remote-cluster-id']));
    expect([peers(consumer), peers(provider)]).toEqual([new Set(['milan']), new Set(['rome'])]);
  });

  test('turn the link around when the consumer listens', () => {
    const link = plan.link && { ...plan.link, server: 'consumer' as const };
    expect(kinds('consumer', { ...plan, ...(link ? { link } : {}) })).toContain('GatewayServer server');
    expect(kinds('provider', { ...plan, ...(link ? { link } : {}) })).toContain('GatewayClient client');
  });

  test('without a network have none of its objects', () => {
    const { link: _, ...without } = plan;
    expect(kinds('consumer', without)).toEqual([
      'Namespace liqo-tenant-milan',
      'ResourceSlice milan',
      'Secret cplane-secret',
    ]);
  });
});

test('a kubeconfig is YAML, for all names', () => {
  const text = kubeconfigText({
    cluster: 'yes',
    user: '123',
    server: 'https://192.0.2.1:6443',
    ca: 'CA',
    certificate: 'CERT',
    privateKey: 'KEY',
    namespace: 'null',
  });
  expect(yaml.parse(text)).toMatchObject({
    clusters: [{ name: 'yes', cluster: { server: 'https://192.0.2.1:6443' } }],
    users: [{ name: '123' }],
    contexts: [{ context: { namespace: 'null' } }],
  });
});
