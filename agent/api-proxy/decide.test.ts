import { generateKeyPairSync } from 'node:crypto';
import { expect, test } from 'vitest';
import type { Configuration } from '#shared/schema/liqo/configuration.ts';
import type { Ip } from '#shared/schema/liqo/ip.ts';
import type { Tenant } from '#shared/schema/liqo/tenant.ts';
import {
  buildProxyEndpoints,
  buildProxyService,
  consumerAt,
  leadsHere,
  linkedClusters,
  proxyKey,
  proxyTargets,
  proxyUsers,
  tokenConditions,
  tokenGraceMs,
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

test('the Service has no selector, and its endpoint is the replica that listens', () => {
  expect(buildProxyService('liqo').spec).not.toHaveProperty('selector');
  expect(buildProxyEndpoints('liqo', { ip: '10.200.1.9', port: 8118 })).toMatchObject({
    endpoints: [{ addresses: ['10.200.1.9'] }],
    ports: [{ name: 'proxy', port: 8118 }],
  });
});

const heard = (change: object = {}) => ({
  welcomeSince: 1_000,
  hasCome: false,
  tokenless: { at: 1_000 + tokenGraceMs, from: '10.200.1.1' },
  ...change,
});
const told = tokenConditions(tenant(), true, heard(), 40_000);
const saying = tenant({}, { authParams: {}, conditions: told });
test.each([
  { what: 'shows no token for half a minute while others come without one', of: tenant(), heard: heard(), is: true },
  { what: 'came a moment ago', of: tenant(), heard: heard({ tokenless: { at: 2_000, from: 'x' } }), is: false },
  { what: 'shows tokens', of: tenant(), heard: heard({ hasCome: true }), is: false },
  { what: 'has not been heard, like any other', of: tenant(), heard: heard({ tokenless: undefined }), is: false },
  { what: 'was told so before another leader', of: saying, heard: heard({ tokenless: undefined }), is: true },
  { what: 'was told so, and shows tokens now', of: saying, heard: heard({ hasCome: true }), is: false },
])('of a consumer that $what the Tenant says that it makes no tokens: $is', ({ of, heard: news, is }) => {
  const conditions = tokenConditions(of, true, news, 40_000);
  expect(conditions.some(({ type, status }) => type === 'InBandToken' && status === 'False')).toBe(is);
});
test('a consumer that no longer comes through the link is not told about tokens, and other conditions stay', () => {
  const handshake = { type: 'Handshake', status: 'False', reason: 'x', message: '', lastTransitionTime: 't' };
  const of = tenant({ proxyURL: '' }, { authParams: {}, conditions: [...told, handshake] });
  expect(tokenConditions(of, false, undefined, 40_000)).toEqual([handshake]);
});

const exposed = { status: { ip: '10.70.0.3', cidr: '10.70.0.0/16' } } as unknown as Ip;
test.each([
  ['http://10.171.0.3:8118', exposed, true],
  ['http://10.70.0.3:8118', exposed, true],
  ['http://10.171.0.4:8118', exposed, false],
  ['http://10.171.0.3:3128', exposed, false],
  ['http://proxy.example:8118', exposed, false],
  ['http://10.171.0.3:8118', undefined, false],
  ['nonsense', exposed, false],
  [undefined, exposed, false],
] as const)('a consumer told %s comes to the proxy of this cluster: %s, %s', (url, ip, is) => {
  expect(leadsHere(url, ip)).toBe(is);
});

const optedIn = (value = 'true', change: object = {}): Tenant =>
  tenant(
    {},
    { authParams: {} },
    {
      namespace: 'liqo-tenant-rome',
      annotations: { 'isthmus.dev/in-band-without-token': value },
      ...change,
    },
  );
const linked = (metadata: object = {}, cidr: object = { pod: ['10.71.0.0/16'], external: ['10.72.0.0/16'] }) =>
  ({
    metadata: {
      name: 'rome',
      namespace: 'liqo-tenant-rome',
      labels: { 'liqo.io/remote-cluster-id': 'rome' },
      ...metadata,
    },
    // As the peer calls them: other peers may call theirs the same.
    spec: { remote: { cidr: { pod: ['10.1.0.0/16'], external: ['10.146.0.0/16'] } } },
    status: { remote: { cidr } },
  }) as unknown as Configuration;
const drained = { ...optedIn(), spec: { ...optedIn().spec, tenantCondition: 'Drained' as const } };
const direct = { ...optedIn(), spec: { ...optedIn().spec, proxyURL: '' } };
const oslo = (cidr: string) => ({
  tenant: {
    ...optedIn('true', { name: 'oslo', namespace: 'liqo-tenant-oslo' }),
    spec: { ...optedIn().spec, clusterID: 'oslo' },
  },
  link: linked(
    { name: 'oslo', namespace: 'liqo-tenant-oslo', labels: { 'liqo.io/remote-cluster-id': 'oslo' } },
    { pod: [cidr], external: [] },
  ),
});

test.each([
  { what: 'a pod of the consumer', from: '10.71.3.4', is: 'rome' },
  { what: 'a node of the consumer', from: '10.72.0.2', is: 'rome' },
  { what: 'the same, as a socket for both families has it', from: '::ffff:10.72.0.2', is: 'rome' },
  { what: 'the address that the consumer has for itself', from: '10.1.3.4', is: undefined },
  { what: 'a pod of the provider', from: '10.200.1.7', is: undefined },
  { what: 'the next range', from: '10.73.0.0', is: undefined },
  { what: 'no IPv4 address', from: '::1', is: undefined },
  { what: 'a consumer that was not let in', from: '10.71.3.4', tenants: [tenant()], is: undefined },
  { what: 'one whose annotation is false', from: '10.71.3.4', tenants: [optedIn('false')], is: undefined },
  { what: 'one that is drained', from: '10.71.3.4', tenants: [drained], is: undefined },
  { what: 'one that comes directly', from: '10.71.3.4', tenants: [direct], is: undefined },
  { what: 'a link without ranges', from: '10.71.3.4', links: [linked({}, {})], is: undefined },
  {
    what: 'a link that is going',
    from: '10.71.3.4',
    links: [linked({ deletionTimestamp: 'now' })],
    is: undefined,
  },
  {
    what: 'a Configuration in the namespace of another consumer',
    from: '10.71.3.4',
    links: [linked({ namespace: 'liqo-tenant-oslo' })],
    is: undefined,
  },
  {
    what: 'one of two consumers that are let in',
    from: '10.75.0.1',
    tenants: [optedIn(), oslo('10.75.0.0/16').tenant],
    links: [linked(), oslo('10.75.0.0/16').link],
    is: 'oslo',
  },
  {
    what: 'an address that two consumers have',
    from: '10.71.3.4',
    tenants: [optedIn(), oslo('10.71.3.0/24').tenant],
    links: [linked(), oslo('10.71.3.0/24').link],
    is: undefined,
  },
])('$what, from $from, needs no token as $is', ({ from, tenants = [optedIn()], links = [linked()], is }) => {
  expect(consumerAt(from, tenants, links)).toBe(is);
});

const ranges = ['10.71.0.0/16'];
const notFromLink = tokenConditions(optedIn(), true, heard(), 40_000, ranges);
test.each([
  { what: 'was just let in', news: heard({ tokenless: undefined }), status: 'True', reason: 'NotRequired' },
  { what: 'comes from its link', news: heard({ hasCome: true }), status: 'True', reason: 'NotRequired' },
  { what: 'never comes while others are refused', news: heard(), status: 'False', reason: 'NotFromLink' },
  {
    what: 'was told that it does not come, before another leader',
    of: notFromLink,
    news: heard({ tokenless: undefined }),
    status: 'False',
    reason: 'NotFromLink',
  },
  {
    what: 'was told so, and comes now',
    of: notFromLink,
    news: heard({ hasCome: true }),
    status: 'True',
    reason: 'NotRequired',
  },
  {
    what: 'was told that it makes no tokens',
    of: told,
    news: heard({ tokenless: undefined }),
    status: 'True',
    reason: 'NotRequired',
  },
])('the Tenant of a consumer that needs no token and $what says $reason', ({ of = [], news, status, reason }) => {
  const before = { ...optedIn(), status: { conditions: of } } as unknown as Tenant;
  const [condition, ...others] = tokenConditions(before, true, news, 40_000, ranges);
  expect(condition).toMatchObject({ type: 'InBandToken', status, reason });
  expect(condition?.message).toContain('10.71.0.0/16');
  expect(others).toEqual([]);
});
test('what a Tenant says of a consumer that needs no token goes when it needs one again', () => {
  const conditions = tokenConditions(optedIn(), true, heard({ tokenless: undefined }), 40_000, ranges);
  const before = tenant({}, { authParams: {}, conditions });
  expect(tokenConditions(before, true, heard({ tokenless: undefined }), 40_000)).toEqual([]);
});
