import { expect, test } from 'vitest';
import type { Configuration } from '#shared/schema/liqo/configuration.ts';
import type { Identity } from '#shared/schema/liqo/identity.ts';
import { refusedEndpoint } from './endpoints.ts';

const identity = (apiServer: string, proxyURL?: string): Identity =>
  ({
    apiVersion: 'authentication.liqo.io/v1beta1',
    kind: 'Identity',
    metadata: { name: 'controlplane-milan', namespace: 'liqo-tenant-milan' },
    spec: { clusterID: 'milan', type: 'ControlPlane', authParams: { apiServer, ...(proxyURL && { proxyURL }) } },
  }) as Identity;
const space = (accepted?: string) => ({
  metadata: {
    name: 'liqo-tenant-milan',
    ...(accepted && { annotations: { 'isthmus.dev/accepted-endpoints': accepted } }),
  },
});
const link = {
  status: { remote: { cidr: { pod: ['10.71.0.0/16'], external: ['10.72.0.0/16'] } } },
} as unknown as Configuration;
const https = 'https://api.milan.example:6443';

test('an API server without TLS is refused until the tenant namespace accepts it', () => {
  const plain = identity('http://api.milan.example');
  expect(refusedEndpoint(plain, space(), link)).toMatch(
    /apiServer is http:.*accepted is https.*accepted-endpoints=http/,
  );
  expect(refusedEndpoint(plain, space('private-proxy, http'), link)).toBeUndefined();
  expect(refusedEndpoint(identity(https), space(), undefined)).toBeUndefined();
});

test.each([
  ['http://169.254.169.254:80'],
  ['http://127.0.0.1:10250'],
  ['http://2130706433:80'],
  ['http://0x7f.1:80'],
  ['http://localhost'],
  ['http://[::1]:8118'],
  ['http://[::ffff:10.0.0.1]:8118'],
  ['http://[fd00::1]:8118'],
  ['http://[fe80::1]:8118'],
  ['http://kubernetes.default.svc:443'],
  ['http://metadata.google.internal.'],
  ['http://vault'],
  ['http://10.0.0.2:53'],
  ['http://192.168.1.1'],
  ['http://100.100.2.136'],
])('proxy %s is refused, with and without a link, until the tenant namespace accepts it', (proxy) => {
  const asked = identity(https, proxy);
  for (const configuration of [undefined, link])
    expect(refusedEndpoint(asked, space(), configuration)).toMatch(
      /proxyURL is .*private.*accepted-endpoints=private-proxy/,
    );
  expect(refusedEndpoint(asked, space('private-proxy'), undefined)).toBeUndefined();
});

test('a proxy in the ranges of the provider, and a public one, may be used', () => {
  expect(refusedEndpoint(identity(https, 'http://10.72.0.9:8118'), space(), link)).toBeUndefined();
  expect(refusedEndpoint(identity(https, 'http://10.72.0.9:8118'), space(), undefined)).toMatch(/private/);
  expect(refusedEndpoint(identity(https, 'https://proxy.milan.example'), space(), undefined)).toBeUndefined();
  expect(refusedEndpoint(identity(https, 'no url'), space(), link)).toMatch(/accepted is a URL/);
});
