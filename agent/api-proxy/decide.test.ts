import { generateKeyPairSync } from 'node:crypto';
import { expect, test } from 'vitest';
import type { Configuration } from '#shared/schema/liqo/configuration.ts';
import type { Tenant } from '#shared/schema/liqo/tenant.ts';
import {
  forgeProxyEndpoints,
  forgeProxyService,
  linkedClusters,
  proxyKey,
  proxyTargets,
  proxyUsers,
} from './decide.ts';

const key = generateKeyPairSync('ed25519').publicKey.export({ type: 'spki', format: 'pem' }).toString();
const encoded = Buffer.from(key).toString('base64');
const tenant = (
  spec: Partial<Tenant['spec']> = {},
  status: object = { authParams: {} },
  metadata: object = {},
): Tenant =>
  ({
    metadata: { name: 'rome', ...metadata },
    spec: { clusterID: 'rome', publicKey: encoded, proxyURL: 'http://10.71.0.9:8118', ...spec },
    status,
  }) as Tenant;

const [both, certificateOnly, nothing] = [['api-server', 'certificate'], ['certificate'], []] as const;
test.each([
  { what: 'one that was told so', tenants: [tenant()], comesFor: both },
  { what: 'one that is cordoned', tenants: [tenant({ tenantCondition: 'Cordoned' })], comesFor: both },
  { what: 'one that is drained', tenants: [tenant({ tenantCondition: 'Drained' })], comesFor: nothing },
  { what: 'one that comes directly', tenants: [tenant({ proxyURL: '' })], comesFor: certificateOnly },
  { what: 'one that has no link', tenants: [tenant({ proxyURL: '', clusterID: 'oslo' })], comesFor: nothing },
  { what: 'one that has proved nothing', tenants: [tenant({}, {})], comesFor: nothing },
  { what: 'one without a key', tenants: [tenant({ publicKey: '' })], comesFor: nothing },
  {
    what: 'one that is going',
    tenants: [tenant({}, { authParams: {} }, { deletionTimestamp: 'now' })],
    comesFor: nothing,
  },
])('of consumers, $what may come to the proxy for: $comesFor', ({ tenants, comesFor }) => {
  const users = proxyUsers(tenants, new Set(['rome']));
  expect(users.flatMap(({ isInBand }) => (isInBand ? both : certificateOnly))).toEqual(comesFor);
});

test('a consumer with two Tenants has both keys', () => {
  const other = Buffer.from(`${key}\n`).toString('base64');
  const users = proxyUsers([tenant(), tenant({ publicKey: other })], new Set());
  expect(users.map(({ publicKey }) => publicKey)).toEqual([encoded, other]);
});

test('a link is declared by a Configuration that stays, and names its cluster', () => {
  const configuration = (metadata: object) => ({ metadata }) as Configuration;
  const labels = { 'liqo.io/remote-cluster-id': 'rome' };
  expect([...linkedClusters([configuration({ labels }), configuration({})])]).toEqual(['rome']);
  expect(linkedClusters([configuration({ labels, deletionTimestamp: 'now' })]).size).toBe(0);
});

test('only Ed25519 keys sign tokens, and what is no key at all is none', () => {
  const rsa = generateKeyPairSync('rsa', { modulusLength: 2048 }).publicKey.export({ type: 'spki', format: 'pem' });
  expect(proxyKey(encoded)?.asymmetricKeyType).toBe('ed25519');
  expect(proxyKey(Buffer.from(rsa).toString('base64'))).toBeUndefined();
  expect(proxyKey('bm8ga2V5')).toBeUndefined();
});

test.each([
  ['https://milan.example', 'milan.example:443'],
  ['https://192.0.2.1:6443/prefix', '192.0.2.1:6443'],
  ['https://[2001:db8::1]:6443', '[2001:db8::1]:6443'],
])('the API server at %s is %s, and kubernetes inside', (url, target) => {
  expect([...proxyTargets(url)]).toEqual([
    target,
    'kubernetes.default:443',
    'kubernetes.default.svc:443',
    'kubernetes.default.svc.cluster.local:443',
  ]);
});

test('the Service selects nobody, and its endpoint is the replica that listens', () => {
  expect(forgeProxyService('liqo').spec).not.toHaveProperty('selector');
  expect(forgeProxyEndpoints('liqo', { ip: '10.200.1.9', port: 8118 })).toMatchObject({
    endpoints: [{ addresses: ['10.200.1.9'] }],
    ports: [{ name: 'proxy', port: 8118 }],
  });
});
