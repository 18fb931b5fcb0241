/** Connection: what the broker learns of the state of a link, and when. */
import { expect, test } from 'vitest';
import { ManualClock } from '#shared/ports/clock.ts';
import type { ClusterFacts } from '#shared/schema/protocol/agent-protocol.ts';
import { newsOf, observedObject, observedSet } from '../sync/observed-objects.ts';
import { createReportDiff } from '../sync/report-diff.ts';

const metadata = { name: 'gw-milan', namespace: 'liqo-tenant-milan', uid: 'u1' };
const facts = {} as ClusterFacts;
const networking = 'networking.liqo.io/v1beta1';
const connection = (status: object) =>
  observedObject('Connection', networking, {
    apiVersion: networking,
    kind: 'Connection',
    metadata,
    status,
  } as Parameters<typeof observedObject>[2]);
const setOf = (status: object) => observedSet({ peering: 'pe_1', role: 'consumer' }, 1, [connection(status)], []);

test('the first latency that was measured is reported at once', () => {
  const clock = new ManualClock();
  const reports = createReportDiff(clock);
  const news = (latency: string) => {
    const current = { sets: [setOf({ value: 'Connected', latency: { value: latency } })], facts, asks: [] };
    const found = reports.send(current).sets;
    reports.acknowledge(current);
    return found.length;
  };
  expect(['N/A', 'N/A', '12ms', '13ms', 'N/A', '250μs'].map(news)).toEqual([1, 0, 1, 0, 1, 1]);
  const asJson = (latency: object) => JSON.stringify(newsOf(setOf({ value: 'Connected', mtu: 1340, ...latency })));
  expect(asJson({})).toBe(asJson({ latency: { value: 'N/A' } }));
});

test('a field that does not have its form is left out and named as unfit, the others are reported', () => {
  const { data, unfit } = connection({ value: 'Connected', latency: { value: 'fast' }, mtu: 1340, packetLoss: 101 });
  expect(data).toEqual({ value: 'Connected', mtu: 1340 });
  expect(unfit).toMatchObject([
    { field: 'latency', value: '"fast"' },
    { field: 'packetLoss', value: '101' },
  ]);
  expect(connection({ value: 'Connected' })).not.toHaveProperty('unfit');
});

test('latency alone is reported every five minutes, a link that goes down at once', () => {
  const clock = new ManualClock();
  const reports = createReportDiff(clock);
  const at = (status: object) => {
    const current = { sets: [setOf(status)], facts, asks: [] };
    const news = reports.send(current).sets;
    reports.acknowledge(current);
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
