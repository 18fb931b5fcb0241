import { expect, test } from 'vitest';
import type { Ip } from '#shared/schema/liqo/ip.ts';
import { networkStatus } from '../network/decide.ts';
import { buildEndpoints, buildService, ipStatus, settleGrant } from './decide.ts';
import { buildExposedService } from './exposed-service.ts';

const now = Date.UTC(2026, 0, 1);
const owner = { apiVersion: 'ipam.liqo.io/v1alpha1', kind: 'IP', name: 'db', uid: 'u' };
const ip = (spec: object = {}, status?: object): Ip =>
  ({
    metadata: { name: 'db', namespace: 'liqo' },
    spec: { ip: '172.30.0.1', ...spec },
    ...(status ? { status } : {}),
  }) as Ip;
const exhausted = {
  refused: { reason: 'AddressesExhausted', message: 'all 3 addresses of Network liqo/x (10.70.0.0/30) are taken' },
} as const;

test.each([
  { what: 'none before', before: undefined, grant: { granted: '10.70.0.5' }, is: '10.70.0.5' },
  { what: 'the same before', before: '10.70.0.5', grant: { granted: '10.70.0.5' }, is: '10.70.0.5' },
  { what: 'another before', before: '10.70.0.4', grant: { granted: '10.70.0.5' }, is: 'RangeTaken' },
  { what: 'a refusal', before: undefined, grant: exhausted, is: 'AddressesExhausted' },
])('an address with $what settles as $is', ({ before, grant, is }) => {
  const settled = settleGrant(ip({}, before === undefined ? undefined : { ip: before }), grant);
  expect('granted' in settled ? settled.granted : settled.refused.reason).toBe(is);
});

test('that no address is left is a condition that names the Network, its range and how many it has', () => {
  expect(ipStatus(ip(), exhausted, '10.70.0.0/30', now)).toEqual({
    conditions: [
      {
        type: 'Granted',
        status: 'False',
        reason: 'AddressesExhausted',
        message: 'all 3 addresses of Network liqo/x (10.70.0.0/30) are taken',
        lastTransitionTime: '2026-01-01T00:00:00Z',
      },
    ],
  });
});

test('an address that was granted stays in the status when a later grant is refused, and so does its range', () => {
  const known = ip({}, { ip: '10.70.0.4', cidr: '10.70.0.0/16' });
  expect(ipStatus(known, exhausted, '10.70.0.0/16', now)).toMatchObject({ ip: '10.70.0.4', cidr: '10.70.0.0/16' });
  expect(ipStatus(known, { granted: '10.70.0.4' }, '10.99.0.0/16', now).cidr).toBe('10.70.0.0/16');
});

test('writing the same status again changes nothing, whenever that is', () => {
  const first = ipStatus(ip(), exhausted, undefined, now);
  expect(ipStatus(ip({}, first), exhausted, undefined, now + 60_000)).toEqual(first);
});

test('a Service for a host has no selector, and its endpoint is the exposed address at the target port', () => {
  const ports = [
    { name: 'web', port: 80, targetPort: 8080 },
    { port: 53, protocol: 'UDP', targetPort: 'dns' },
  ];
  const published = ip({ serviceTemplate: { spec: { selector: { app: 'x' }, ports } } });
  expect(buildService(published, owner)?.spec).toEqual({ ports });
  expect(buildEndpoints(published, owner, '10.70.0.5')).toMatchObject({
    endpoints: [{ addresses: ['10.70.0.5'] }],
    ports: [
      { name: 'web', port: 8080, protocol: 'TCP' },
      { port: 53, protocol: 'UDP' },
    ],
  });
  expect(buildService(ip(), owner)).toBeUndefined();
});

test('a Service of ours is exposed by its cluster IP, behind the node that translates it', () => {
  const forged = buildExposedService({
    name: 'api-server',
    namespace: 'liqo',
    ipType: 'api-server',
    clusterIp: '10.96.0.1',
  });
  expect(forged.spec).toEqual({ ip: '10.96.0.1', masquerade: true });
  expect(forged.metadata.labels).toMatchObject({ 'ipam.liqo.io/ip-type': 'api-server' });
});

test.each([
  { what: 'as wanted', granted: '10.70.0.0/16', says: 'as wanted' },
  { what: 'another one', granted: '10.71.0.0/16', says: '10.70.0.0/16 is in use: moved' },
])('a Network that got $what says so', ({ granted, says }) => {
  const network = { metadata: { name: 'x', generation: 3 }, spec: { cidr: '10.70.0.0/16' } } as never;
  const status = networkStatus(network, { granted }, now);
  expect(status.cidr).toBe(granted);
  expect(status.conditions?.[0]).toMatchObject({ status: 'True', message: says, observedGeneration: 3 });
});

test('a range once granted stays in the status, also when a later request is refused', () => {
  const network = {
    metadata: { name: 'x' },
    spec: { cidr: '10.70.0.0/16' },
    status: { cidr: '10.71.0.0/16' },
  } as never;
  const refused = { refused: { reason: 'PoolExhausted', message: 'none left' } } as const;
  expect(networkStatus(network, refused, now)).toMatchObject({
    cidr: '10.71.0.0/16',
    conditions: [{ status: 'False', reason: 'PoolExhausted', message: 'none left' }],
  });
});
