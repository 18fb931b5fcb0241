/** What the agent's own code writes about a link, sent and read by the broker: nothing of it is lost on the way. */
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { observedObject, observedSet } from '#agent/broker/sync/observed-objects.ts';
import { candidateOf } from '#agent/network/gateway/wireguard/endpoint.ts';
import {
  latencyText,
  linkValue,
  type PingState,
  pingSent,
  pongReceived,
  startPings,
} from '#agent/network/link/ping/decide.ts';
import type { LinkReport } from '#agent/network/link/tunnel/run.ts';
import { connectionFields } from '#agent/network/node/connection-status.ts';
import { unreadable } from '#control/peerings/core/observed.ts';
import { readEnd } from '#control/peerings/link/reports.ts';
import type { KubeObject } from '#shared/domain/kube-object.ts';
import { networkCidrsConfigured } from '#shared/domain/network-keys.ts';
import { type ObservedObject, ObservedSet } from '#shared/schema/protocol/agent-protocol.ts';
import { isObservedKind } from '#shared/schema/protocol/observed-data.ts';

const networking = 'networking.liqo.io/v1beta1';
type More = Readonly<Record<string, unknown>>;
const object = (kind: string, name: string, more: More): ObservedObject =>
  observedObject(kind, kind === 'Secret' ? 'v1' : networking, {
    apiVersion: networking,
    kind,
    metadata: { name, namespace: 'liqo-tenant-milan', uid: 'u', generation: 1, ...(more.metadata as object) },
    ...Object.fromEntries(Object.entries(more).filter(([field]) => field !== 'metadata')),
  } as KubeObject);

/** Over the wire, as JSON, and through the schema of the request. */
function read(...objects: ObservedObject[]) {
  const sent = observedSet({ peering: 'pe_1', role: 'consumer' }, 1, objects, []);
  const set = ObservedSet.parse(JSON.parse(JSON.stringify(sent)));
  expect(unreadable(set)).toEqual([]);
  return readEnd(set, 'milan');
}

/** Any course of pings, by the clock that has milliseconds and the one that has fractions of them. */
const course = fc.array(
  fc.record({ ms: fc.nat({ max: 15_000 }), micros: fc.nat({ max: 999 }), pings: fc.boolean(), answered: fc.boolean() }),
  { maxLength: 40 },
);

function pinged(steps: readonly { ms: number; micros: number; pings: boolean; answered: boolean }[]): {
  readonly state: PingState;
  readonly now: number;
} {
  let now = Date.UTC(2026, 0, 1);
  let precise = 0;
  let state = startPings(now);
  for (const [serial, step] of steps.entries()) {
    now += step.ms;
    precise += step.ms + step.micros / 1_000;
    if (step.pings) state = pingSent(state, `${serial}`, now, precise);
    const [oldest] = state.pending;
    if (step.answered && oldest !== undefined) state = pongReceived(state, oldest.timeStamp, now, precise);
  }
  return { state, now };
}

const endpoints = fc.tuple(fc.ipV4(), fc.integer({ min: 1, max: 65_535 })).map(([address, at]) => `${address}:${at}`);
const rest = fc.record(
  {
    packetLoss: fc.integer({ min: 0, max: 100 }),
    peerEndpoint: endpoints,
    handshakeAt: fc.integer({ min: 1, max: Date.UTC(2090, 0, 1) }),
    mtu: fc.integer({ min: 576, max: 9_000 }),
  },
  { requiredKeys: [] },
);

describe('what the agent says of a link reaches the broker whole', () => {
  test('its Connection, for every combination of present and absent measurements', () => {
    fc.assert(
      fc.property(course, rest, (steps, more) => {
        const { state, now } = pinged(steps);
        const report: LinkReport = {
          ...more,
          value: linkValue(state, now),
          ...(state.rttMs === undefined ? {} : { rttMs: state.rttMs }),
        };
        // A merge patch: what is null is not there.
        const fields = Object.entries(connectionFields(report, now)).filter(([, value]) => value !== null);
        const status = Object.fromEntries(fields) as unknown as ReturnType<typeof connectionFields>;
        const { connection } = read(object('Connection', 'gw-milan', { status }));
        const latency = latencyText(report.rttMs);
        expect(connection).toEqual({
          value: report.value,
          ...(latency === 'N/A' ? {} : { latency }),
          ...(more.mtu === undefined ? {} : { mtu: more.mtu }),
          ...(more.peerEndpoint === undefined ? {} : { peerEndpoint: more.peerEndpoint }),
          ...(more.handshakeAt === undefined ? {} : { lastHandshakeTime: status.lastHandshakeTime }),
          ...(more.packetLoss === undefined ? {} : { packetLoss: more.packetLoss }),
        });
      }),
    );
  });

  test('round trips of every length, and none', () => {
    const lengths = fc.oneof(fc.constant(undefined), fc.double({ min: 0, max: 1e7, noNaN: true }));
    fc.assert(
      fc.property(lengths, (rttMs) => {
        const status = { value: 'Connected', latency: { value: latencyText(rttMs) } };
        expect(read(object('Connection', 'gw-milan', { status })).connection?.value).toBe('Connected');
      }),
    );
  });

  test('its gateway, key and ranges', () => {
    const address = fc.oneof(fc.ipV4(), fc.domain());
    const port = fc.integer({ min: 1, max: 65_535 });
    const candidates = fc.array(
      fc.tuple(address, port).map(([at, number]) => candidateOf(at, number)),
      { maxLength: 8 },
    );
    const ranges = fc.array(
      fc.tuple(fc.ipV4(), fc.integer({ min: 8, max: 30 })).map(([base, bits]) => `${base}/${bits}`),
      { minLength: 1, maxLength: 3 },
    );
    const key = fc.uint8Array({ minLength: 32, maxLength: 32 }).map((bytes) => Buffer.from(bytes).toString('base64'));
    fc.assert(
      fc.property(candidates, key, ranges, ranges, (found, publicKey, pod, external) => {
        const configured = { type: networkCidrsConfigured, status: 'True', observedGeneration: 1 };
        const end = read(
          object('GatewayServer', 'milan', {
            metadata: { annotations: { 'networking.isthmus.dev/candidates': JSON.stringify(found) } },
            status: { conditions: [{ type: 'Ready', status: 'False', reason: 'X', message: 'y' }] },
          }),
          object('Secret', 'gw-milan', { data: { publicKey } }),
          object('Configuration', 'milan', {
            status: { remote: { cidr: { pod, external } }, conditions: [configured] },
          }),
        );
        expect(end).toEqual({
          gatewayKind: 'GatewayServer',
          candidates: found,
          key: publicKey,
          gateway: { reason: 'X', message: 'y' },
          isConfigured: true,
          remote: { pod, external },
        });
      }),
    );
  });
});

describe('a field that does not fit', () => {
  const raw = (kind: string, name: string, data: More): ObservedObject => ({
    apiVersion: networking,
    kind,
    name,
    uid: 'u',
    data: { ...data },
  });
  const setOf = (...objects: ObservedObject[]) => observedSet({ peering: 'pe_1', role: 'consumer' }, 1, objects, []);
  const good = { value: 'Connected', latency: '1ms', mtu: 1340, peerEndpoint: '192.0.2.1:7', packetLoss: 0 };

  test.each([
    ['latency', 'fast', 'must be a number with ms, μs or s, or N/A'],
    ['mtu', -1, 'Too small: expected number to be >=0'],
    ['peerEndpoint', 'over there', 'must be ADDRESS:PORT'],
    ['packetLoss', 101, 'Too big: expected number to be <=100'],
    ['lastHandshakeTime', 'yesterday', 'Invalid ISO datetime'],
  ])('costs that field only: %s', (field, value, accepted) => {
    const set = setOf(raw('Connection', 'gw-milan', { ...good, [field]: value }));
    const { [field as 'mtu']: _, ...kept } = good;
    expect(readEnd(set, 'milan').connection).toEqual(kept);
    expect(unreadable(set)).toEqual([`Connection gw-milan: ${field} is ${JSON.stringify(value)}: ${accepted}`]);
  });

  test('of a list costs that entry only', () => {
    const set = setOf(raw('GatewayServer', 'milan', { candidates: ['192.0.2.1:7', 'nonsense', 'gw.example:9'] }));
    expect(readEnd(set, 'milan').candidates).toEqual(['192.0.2.1:7', 'gw.example:9']);
    expect(unreadable(set)).toEqual(['GatewayServer milan: candidates[1] is "nonsense": must be ADDRESS:PORT']);
  });

  test('in the cluster itself is told by the agent', () => {
    const status = { value: 'Connected', latency: { value: 'fast' } };
    const set = setOf(object('Connection', 'gw-milan', { status }));
    expect(readEnd(set, 'milan').connection).toEqual({ value: 'Connected' });
    expect(unreadable(set)).toHaveLength(1);
  });

  test('is no more than a few lines, however much there is', () => {
    const many = Array.from({ length: 500 }, () => 'x'.repeat(500));
    const lines = unreadable(setOf(raw('GatewayServer', 'milan', { candidates: many })));
    expect(lines.length).toBeLessThanOrEqual(20);
    expect(Math.max(...lines.map((line) => line.length))).toBeLessThanOrEqual(200);
  });

  test('of anything at all makes nothing fail', () => {
    const kinds = fc.constantFrom('Connection', 'GatewayServer', 'Configuration', 'Secret', 'Tenant', 'Node', 'Other');
    fc.assert(
      fc.property(fc.array(fc.tuple(kinds, fc.dictionary(fc.string(), fc.anything()))), (objects) => {
        const set = setOf(...objects.map(([kind, data]) => raw(kind, 'milan', data)));
        readEnd(set, 'milan');
        unreadable(set);
      }),
    );
    expect(isObservedKind('toString')).toBe(false);
  });
});
