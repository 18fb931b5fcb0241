/** What the broker hears of a link. */
import { expect, test } from 'vitest';
import { ManualClock } from '#shared/ports/clock.ts';
import { createTold } from '../sync/report-diff.ts';
import { observedObject, observedSet } from '../sync/observed-objects.ts';

const metadata = { name: 'gw-milan', namespace: 'liqo-tenant-milan', uid: 'u1' };
const networking = 'networking.liqo.io/v1beta1';
const connection = (status: object) =>
  observedObject('Connection', networking, {
    apiVersion: networking,
    kind: 'Connection',
    metadata,
    status,
  } as Parameters<typeof observedObject>[2]);
const setOf = (status: object) => observedSet({ peering: 'pe_1', role: 'consumer' }, 1, [connection(status)], []);

test('of a gateway’s Secret the broker hears the public key and nothing else', () => {
  const secret = {
    apiVersion: 'v1',
    kind: 'Secret',
    metadata,
    data: { privateKey: 'cHJpdmF0ZQ==', publicKey: 'cHVibGlj', other: 'b3RoZXI=' },
  };
  expect(observedObject('Secret', 'v1', secret).data).toEqual({ publicKey: 'cHVibGlj' });
});

test('of a gateway the broker hears where it can be reached, not on which node it runs', () => {
  const gateway = {
    apiVersion: networking,
    kind: 'GatewayServer',
    metadata: { ...metadata, annotations: { 'networking.isthmus.dev/candidates': '["192.0.2.1:30000"]', x: 'y' } },
    status: {
      endpoint: { addresses: ['192.0.2.1'], port: 30_000 },
      internalEndpoint: { ip: '10.0.0.1', node: 'inner' },
      secretRef: { name: 'inner' },
    },
  };
  expect(observedObject('GatewayServer', networking, gateway).data).toEqual({
    endpoint: { addresses: ['192.0.2.1'], port: 30_000 },
    candidates: ['192.0.2.1:30000'],
  });
  const broken = { ...gateway, metadata: { ...metadata, annotations: { 'networking.isthmus.dev/candidates': '{' } } };
  expect(observedObject('GatewayServer', networking, broken).data).toMatchObject({ candidates: [] });
});

test('the first latency that was measured is news', () => {
  const clock = new ManualClock();
  const told = createTold(clock);
  const news = (latency: string) => {
    const sets = [setOf({ value: 'Connected', latency: { value: latency } })];
    const found = told.news(sets);
    told.remember(found, sets);
    return found.length;
  };
  expect(['N/A', 'N/A', '12ms', '13ms', 'N/A', '250μs'].map(news)).toEqual([1, 0, 1, 0, 1, 1]);
});

test('a field that does not have its form is left out and told, the others are sent', () => {
  const { data, unfit } = connection({ value: 'Connected', latency: { value: 'fast' }, mtu: 1340, packetLoss: 101 });
  expect(data).toEqual({ value: 'Connected', mtu: 1340 });
  expect(unfit).toMatchObject([
    { field: 'latency', value: '"fast"' },
    { field: 'packetLoss', value: '101' },
  ]);
  expect(connection({ value: 'Connected' })).not.toHaveProperty('unfit');
});

test('latency alone is told every five minutes, a link that goes down at once', () => {
  const clock = new ManualClock();
  const told = createTold(clock);
  const at = (status: object) => {
    const sets = [setOf(status)];
    const news = told.news(sets);
    told.remember(news, sets);
    return news.length;
  };
  const up = { value: 'Connected', latency: { value: '1ms' }, lastHandshakeTime: '2026-01-01T00:00:00Z' };
  expect(at(up)).toBe(1);
  expect(at({ ...up, latency: { value: '2ms' }, packetLoss: 3 })).toBe(0);
  clock.advance(5 * 60_000 - 1);
  expect(at({ ...up, latency: { value: '3ms' } })).toBe(0);
  clock.advance(1);
  expect(at({ ...up, latency: { value: '3ms' } })).toBe(1);
  expect(at({ ...up, value: 'Error' })).toBe(1);
  clock.advance(10 * 60_000);
  expect(at({ ...up, value: 'Error' })).toBe(0);
  expect(at({ ...up, value: 'Error', latency: { value: '9ms' } })).toBe(1);
});
