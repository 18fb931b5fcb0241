/** What credentials that lead through the link are worth when they, the link or both are taken down. */
import { expect, test } from 'vitest';
import type { KubeObject, Secret } from '#shared/domain/kube-object.ts';
import { isthmusAnnotation } from '#shared/domain/liqo-keys.ts';
import type { Configuration } from '#shared/schema/liqo/configuration.ts';
import { hasLostAccess, isUnreachable, proxyInLink, type ReachabilityFacts } from './reachability.ts';

const endedAt = '2026-01-01T00:00:00Z';
const atMs = (seconds: number): number => Date.parse(endedAt) + seconds * 1_000;
const proxyUrl = 'proxy-url: "http://10.71.0.9:8118"';
const credentials = (proxy: string, { mark, going = true }: { mark?: string; going?: boolean } = {}): Secret => ({
  apiVersion: 'v1',
  kind: 'Secret',
  metadata: {
    name: 'kubeconfig-controlplane-milan',
    namespace: 'liqo-tenant-milan',
    ...(going && { deletionTimestamp: endedAt }),
    ...(mark && { annotations: { [isthmusAnnotation.proxyInLink]: mark } }),
  },
  data: { kubeconfig: Buffer.from(`clusters:\n- cluster:\n    ${proxy}\n`).toString('base64') },
});
const metadata = (going: boolean) => ({ name: 'milan', ...(going && { deletionTimestamp: endedAt }) });
const configuration = (going = false, views = ['10.71.0.0/16']): Configuration => ({
  apiVersion: 'networking.liqo.io/v1beta1',
  kind: 'Configuration',
  metadata: metadata(going),
  spec: { remote: { cidr: { pod: [], external: ['10.70.0.0/16'] } } },
  status: { remote: { cidr: { pod: [], external: views } } },
});
const gateway = (going = false): KubeObject => ({
  apiVersion: 'networking.liqo.io/v1beta1',
  kind: 'GatewayClient',
  metadata: metadata(going),
});
const inBand = credentials(proxyUrl, { mark: '10.71.0.9' });
const whole: ReachabilityFacts = { credentials: inBand, configurations: [configuration()], gateways: [gateway()] };

test.each([
  { what: 'an address in a range of the peer', proxy: proxyUrl, of: [configuration()], found: '10.71.0.9' },
  {
    what: 'one in a kubeconfig that is JSON',
    proxy: '"proxy-url":"http://10.71.0.9:8118",',
    of: [configuration()],
    found: '10.71.0.9',
  },
  { what: 'an address elsewhere', proxy: 'proxy-url: http://192.0.2.7:3128', of: [configuration()], found: undefined },
  { what: 'a name', proxy: 'proxy-url: http://proxy.example:3128', of: [configuration()], found: undefined },
  { what: 'none', proxy: 'server: "https://10.71.0.9"', of: [configuration()], found: undefined },
  { what: 'an address while no range is granted', proxy: proxyUrl, of: [configuration(false, [])], found: undefined },
  { what: 'an address without a Configuration', proxy: proxyUrl, of: [], found: undefined },
])('a proxy in the link: $what', ({ proxy, of, found }) => {
  expect(proxyInLink(credentials(proxy), of)).toBe(found);
});

test.each<{ what: string; facts: Partial<ReachabilityFacts>; cut: boolean }>([
  { what: 'while the link is there', facts: {}, cut: false },
  { what: 'without a gateway', facts: { gateways: [] }, cut: true },
  { what: 'with a gateway that goes', facts: { gateways: [gateway(true)] }, cut: true },
  {
    what: 'with one gateway that goes and one that stays',
    facts: { gateways: [gateway(true), gateway()] },
    cut: false,
  },
  { what: 'without a Configuration', facts: { configurations: [] }, cut: true },
  { what: 'with a Configuration that goes', facts: { configurations: [configuration(true)] }, cut: true },
  {
    what: 'that were not ended',
    facts: { credentials: credentials(proxyUrl, { mark: '10.71.0.9', going: false }), gateways: [] },
    cut: false,
  },
  {
    what: 'without a proxy',
    facts: { credentials: credentials('server: "https://192.0.2.1"'), gateways: [], configurations: [] },
    cut: false,
  },
  {
    what: "through the user's own proxy",
    facts: { credentials: credentials('proxy-url: http://192.0.2.7:3128'), gateways: [], configurations: [] },
    cut: false,
  },
  {
    what: 'that led through the link before they got another proxy',
    facts: { credentials: credentials('proxy-url: http://192.0.2.7:3128', { mark: '10.71.0.9' }), configurations: [] },
    cut: false,
  },
])('credentials $what: cut off is $cut', ({ facts, cut }) => {
  expect(isUnreachable({ ...whole, ...facts })).toBe(cut);
});

test('a provider that is silent is given 15 s after the end of credentials through the link, and for ever without that', () => {
  expect([14, 15].map((seconds) => hasLostAccess(whole, atMs(seconds)))).toEqual([false, true]);
  const direct = { ...whole, credentials: credentials('server: "https://192.0.2.1"') };
  expect(hasLostAccess(direct, atMs(3_600))).toBe(false);
  const wanted = { ...whole, credentials: credentials(proxyUrl, { going: false }) };
  expect(hasLostAccess(wanted, atMs(3_600))).toBe(false);
});
