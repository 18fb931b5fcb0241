import { describe, expect, test } from 'vitest';
import { createWireGuardKeys } from '#agent/pki/wireguard-keys.ts';
import type { Namespace, RoleBinding, Secret } from '#shared/domain/kube-object.ts';
import { remoteRoles } from '#shared/domain/remote-roles.ts';
import type { PublicKey } from '#shared/schema/liqo/public-key.ts';
import type { Tenant } from '#shared/schema/liqo/tenant.ts';
import { faultsOf, isAlmost, isIncomplete, type NamespaceFacts } from './decide.ts';

const peer = { 'liqo.io/remote-cluster-id': 'milan' };
const marked = { ...peer, 'liqo.io/tenant-namespace': 'true' };
const namespace = (labels: Record<string, string>): Namespace => ({
  apiVersion: 'v1',
  kind: 'Namespace',
  metadata: { name: 'peer', labels },
});
const base64 = (bytes: Uint8Array): string => Buffer.from(bytes).toString('base64');
const pair = createWireGuardKeys();
const own = { privateKey: base64(pair.privateKey), publicKey: base64(pair.publicKey) };
const theirs = base64(createWireGuardKeys().publicKey);

const secret = (name: string, labels: Record<string, string>, data: Record<string, string>): Secret => ({
  apiVersion: 'v1',
  kind: 'Secret',
  metadata: { name, namespace: 'peer', labels },
  data,
});
const key = (labels: Record<string, string>, publicKey = theirs): PublicKey => ({
  apiVersion: 'networking.liqo.io/v1beta1',
  kind: 'PublicKey',
  metadata: { name: 'gw-publickey', namespace: 'peer', labels },
  spec: { publicKey },
});
const gatewayLabels = { ...peer, 'networking.liqo.io/gateway-resource': 'true' };
const gateway = {
  apiVersion: 'networking.liqo.io/v1beta1',
  kind: 'GatewayServer',
  metadata: { name: 'server', namespace: 'peer', labels: peer },
  spec: { secretRef: { name: 'gw-keys' } },
};
const tenant: Tenant = {
  apiVersion: 'authentication.liqo.io/v1beta1',
  kind: 'Tenant',
  metadata: { name: 'milan', namespace: 'peer', labels: peer },
  spec: { clusterID: 'milan', authzPolicy: 'TolerateNoHandshake', tenantCondition: 'Active' },
};
const binding = (role: string): RoleBinding => ({
  apiVersion: 'rbac.authorization.k8s.io/v1',
  kind: 'RoleBinding',
  metadata: { name: 'liqo-binding', namespace: 'peer' },
  roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: 'ClusterRole', name: role },
  subjects: [],
});
const credentials = secret('cp', { ...peer, 'liqo.io/identity-type': 'ControlPlane' }, { kubeconfig: 'eA==' });

const right: NamespaceFacts = {
  clusterId: 'rome',
  namespace: namespace(marked),
  secrets: [credentials, secret('gw-keys', peer, own)],
  publicKeys: [key(gatewayLabels)],
  gateways: [gateway],
  tenants: [tenant],
  bindings: [binding('liqo-remote-controlplane')],
  others: [{ apiVersion: 'x', kind: 'ResourceSlice', metadata: { name: 's', namespace: 'peer' } }],
  remoteRoles: remoteRoles(),
};

test('manifests as they should be have no fault and lack nothing', () => {
  expect([faultsOf(right), isIncomplete(right)]).toEqual([[], false]);
});

describe('is said on the object that is wrong:', () => {
  const cases: readonly [string, Partial<NamespaceFacts>, string, string, string][] = [
    ['a namespace without its mark', { namespace: namespace(peer) }, 'Namespace', 'NoTenantNamespace', 'absent'],
    [
      'a mark that is misspelt',
      { namespace: namespace({ ...peer, 'liqo.io/tenant-namespaces': 'true' }) },
      'Namespace',
      'NoTenantNamespace',
      'liqo.io/tenant-namespaces looks like a misspelling',
    ],
    [
      'a mark with another value',
      { namespace: namespace({ ...peer, 'liqo.io/tenant-namespace': 'yes' }) },
      'Namespace',
      'NoTenantNamespace',
      'set it to "true"',
    ],
    [
      'a tenant namespace of no peer',
      { namespace: namespace({ 'liqo.io/tenant-namespace': 'true', 'liqo.io/remote-cluster-ID': 'milan' }) },
      'Namespace',
      'MissingClusterID',
      'liqo.io/remote-cluster-ID looks like a misspelling',
    ],
    [
      'a tenant namespace of this cluster itself',
      { namespace: namespace({ ...marked, 'liqo.io/remote-cluster-id': 'rome' }) },
      'Namespace',
      'OwnClusterID',
      'which is this cluster',
    ],
    [
      'credentials without a type',
      { secrets: [secret('cp', peer, { kubeconfig: 'eA==' })] },
      'Secret',
      'NoIdentityType',
      'ControlPlane',
    ],
    [
      'credentials of an unknown type',
      { secrets: [secret('cp', { ...peer, 'liqo.io/identity-type': 'Controlplane' }, {})] },
      'Secret',
      'NoIdentityType',
      'is Controlplane',
    ],
    [
      'credentials for no peer',
      { secrets: [secret('cp', { 'liqo.io/identity-type': 'ControlPlane' }, {})] },
      'Secret',
      'MissingClusterID',
      'here it is milan',
    ],
    [
      'keys that do not belong together',
      { secrets: [secret('gw-keys', peer, { ...own, publicKey: base64(createWireGuardKeys().publicKey) })] },
      'Secret',
      'SecretMalformed',
      'does not belong to privateKey',
    ],
    ['a key for no peer', { publicKeys: [key({})] }, 'PublicKey', 'MissingClusterID', 'here it is milan'],
    [
      'a key of another peer',
      { publicKeys: [key({ ...gatewayLabels, 'liqo.io/remote-cluster-id': 'turin' })] },
      'PublicKey',
      'WrongNamespace',
      'tenant namespace of milan',
    ],
    ['a key that no gateway takes', { publicKeys: [key(peer)] }, 'PublicKey', 'NoGatewayResource', 'absent'],
    ['the own key', { publicKeys: [key(gatewayLabels, own.publicKey)] }, 'PublicKey', 'OwnKey', 'Secret gw-keys'],
    ['a Tenant without a binding', { bindings: [] }, 'Tenant', 'NoBinding', 'liqo-remote-controlplane'],
    [
      "a role with the name in Liqo's own guide",
      { bindings: [binding('liqo-remote-controlpane')] },
      'RoleBinding',
      'NoSuchRole',
      'it should be liqo-remote-controlplane',
    ],
  ];
  test.each(cases)('%s', (_, change, kind, reason, words) => {
    const faults = faultsOf({ ...right, ...change });
    expect(faults.map(({ object, reason: why }) => [object.kind, why])).toEqual([[kind, reason]]);
    expect(faults[0]?.message).toContain(words);
  });
});

test('namespaces that have nothing to do with peerings are left alone', () => {
  const nothing = { publicKeys: [], gateways: [], tenants: [], others: [] };
  expect(faultsOf({ ...right, ...nothing, namespace: namespace(peer) })).toEqual([]);
});

test('a namespace is incomplete while credentials, keys or a binding are to come', () => {
  expect(isIncomplete({ ...right, secrets: [secret('gw-keys', peer, own)] })).toBe(true);
  expect(isIncomplete({ ...right, secrets: [credentials] })).toBe(true);
  expect(isIncomplete({ ...right, bindings: [] })).toBe(true);
});

test('almost is two edits or another case, and never the same', () => {
  expect([isAlmost('abc', 'abc'), isAlmost('Abc', 'abc'), isAlmost('axyc', 'abc'), isAlmost('xyz', 'abc')]).toEqual([
    false,
    true,
    true,
    false,
  ]);
});
