import fc from 'fast-check';
import { expect, test } from 'vitest';
import type { Configuration } from '#shared/schema/liqo/configuration.ts';
import { buildInternalFabric, type InternalFabricInput, isConfigured, pickTunnelId } from './decide.ts';

const configuration = (generation: number, observedGeneration: number, status = 'True'): Configuration =>
  ({
    metadata: { name: 'milan', generation },
    spec: {},
    status: {
      remote: { cidr: { pod: ['10.71.0.0/16', '10.72.0.0/16'], external: ['10.73.0.0/16', '10.71.0.0/16'] } },
      conditions: [{ type: 'NetworkCIDRsConfigured', status, observedGeneration }],
    },
  }) as unknown as Configuration;

const input = (mtu: number | undefined, found: number | undefined, annotation?: string): InternalFabricInput =>
  ({
    gateway: {
      metadata: {
        name: 'milan',
        namespace: 'liqo-tenant-milan',
        ...(annotation === undefined ? {} : { annotations: { 'networking.isthmus.dev/peer-mtu': annotation } }),
      },
      spec: { mtu },
    },
    peer: 'milan',
    owner: { apiVersion: 'v1', kind: 'GatewayServer', name: 'milan', uid: 'u' },
    configuration: configuration(1, 1),
    connection: found === undefined ? undefined : { status: { mtu: found } },
    gatewayIp: '10.200.1.5',
    overlayAddress: '10.80.0.9',
    tunnelId: 4_711,
  }) as unknown as InternalFabricInput;

test.each([
  { mtu: 1400, found: undefined, peer: undefined, size: 1400, why: 'nothing was measured' },
  { mtu: undefined, found: undefined, peer: undefined, size: 1340, why: 'nothing was said' },
  { mtu: 1400, found: 1320, peer: undefined, size: 1320, why: 'this side found less' },
  { mtu: 1400, found: 1320, peer: '1300', size: 1300, why: 'the peer found even less' },
  { mtu: 1400, found: 1300, peer: '1320', size: 1300, why: 'the peer found more' },
  { mtu: 1400, found: undefined, peer: '1310', size: 1310, why: 'only the peer measured' },
  { mtu: 1400, found: 9000, peer: '9000', size: 1400, why: 'no path raises what was asked for' },
  { mtu: 1400, found: undefined, peer: 'tiny', size: 1400, why: 'the peer said nothing of use' },
  { mtu: 1400, found: undefined, peer: '-1', size: 1400, why: 'the peer said nothing possible' },
])('a link carries $size bytes when $why', ({ mtu, found, peer, size }) => {
  expect(buildInternalFabric(input(mtu, found, peer)).spec?.mtu).toBe(size);
});

test('all views of the peer, each once, lead to the gateway of this link', () => {
  const { spec, metadata } = buildInternalFabric(input(1400, undefined));
  expect(spec).toMatchObject({
    remoteCIDRs: ['10.71.0.0/16', '10.72.0.0/16', '10.73.0.0/16'],
    gatewayIP: '10.200.1.5',
    interface: { gateway: { ip: '10.80.0.9' } },
  });
  expect(metadata.annotations).toEqual({ 'networking.isthmus.dev/vni': '4711' });
});

test.each([
  { what: 'what it says now is granted', configured: configuration(2, 2), is: true },
  { what: 'what it said before was', configured: configuration(2, 1), is: false },
  { what: 'it was refused', configured: configuration(2, 2, 'False'), is: false },
])('a Configuration counts when $what: $is', ({ configured, is }) => {
  expect(isConfigured(configured)).toBe(is);
});

test('a tunnel id is a number of 24 bits that is not in use, and never zero', () => {
  fc.assert(
    fc.property(fc.array(fc.uint8Array({ minLength: 3, maxLength: 3 }), { minLength: 1 }), fc.nat(), (draws, seed) => {
      const taken = new Set(draws.slice(0, -1).map(([a = 0, b = 0, c = 0]) => a * 65_536 + b * 256 + c));
      let at = 0;
      const id = pickTunnelId(
        (one) => taken.has(one),
        () => draws[at++] ?? Uint8Array.of(((seed + at) % 255) + 1, at % 256, seed % 256),
      );
      expect(id).toBeGreaterThan(0);
      expect(id).toBeLessThan(2 ** 24);
      expect(taken.has(id)).toBe(false);
    }),
  );
});
