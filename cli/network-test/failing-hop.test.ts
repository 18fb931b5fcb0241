import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import type { EndEvidence, Evidence, Leg } from './evidence.ts';
import { failingHop } from './failing-hop.ts';

const now = 1_000_000_000;
const end = (cluster: string, more: Partial<EndEvidence> = {}): EndEvidence => ({
  cluster,
  node: `${cluster}-1`,
  ranges: 'configured',
  gateway: 'there',
  fabric: true,
  gatewayPods: 1,
  activeNode: `${cluster}-2`,
  connection: { value: 'Connected', mtu: 1340, handshakeAt: now - 20_000 },
  nodeReady: true,
  process: true,
  overlay: true,
  leg: 'works',
  gatewayLeg: 'works',
  hostErrors: [],
  ...more,
});

interface Case {
  readonly name: string;
  readonly from?: Partial<EndEvidence>;
  readonly to?: Partial<EndEvidence>;
  readonly more?: Partial<Evidence>;
  readonly hop: string;
  readonly why: string;
}

const evidence = ({ from, to, more }: Pick<Case, 'from' | 'to' | 'more'>): Evidence => ({
  what: 'pod-to-pod',
  from: end('rome', from),
  to: end('milan', to),
  failure: 'timeout',
  largeOnly: false,
  answersLocally: true,
  now,
  ...more,
});

const errors = { connection: { value: 'Error', handshakeAt: now - 20_000 } };
const neverShook = { connection: { value: 'Connecting' } };

describe('the failing hop', () => {
  test.each<Case>([
    {
      name: 'ranges that the caller has no place for',
      from: { ranges: { missing: 'no pool is left' } },
      hop: 'ranges at rome',
      why: 'no pool is left',
    },
    {
      name: 'ranges that the other end has no place for',
      to: { ranges: { missing: 'no pool is left' } },
      hop: 'ranges at milan',
      why: 'no pool is left',
    },
    { name: 'no gateway', from: { gateway: 'absent' }, hop: 'source gateway at rome', why: 'no GatewayServer' },
    {
      name: 'a gateway without a pod, with its reason',
      to: { gatewayPods: 0, gateway: { problem: 'TemplateMissing: no template wireguard-server' } },
      hop: 'target gateway at milan',
      why: 'no pod: TemplateMissing: no template wireguard-server',
    },
    {
      name: 'no active replica, regardless of what else is silent',
      to: { activeNode: undefined as never, leg: 'silent' },
      hop: 'target gateway at milan',
      why: 'none of the gateway pods is active',
    },
    { name: 'no InternalFabric', from: { fabric: false }, hop: 'source gateway at rome', why: 'no InternalFabric' },
    {
      name: 'no node process at the caller',
      from: { process: false, leg: 'silent' },
      hop: 'source node at rome/rome-1',
      why: 'no node process',
    },
    {
      name: 'a node without a place on the overlay',
      to: { overlay: false, leg: 'silent' },
      hop: 'target node at milan/milan-1',
      why: 'no InternalNode',
    },
    {
      name: "the overlay between the caller's node and its gateway",
      from: { leg: 'silent' },
      hop: 'source node to gateway at rome/rome-1',
      why: 'to the gateway pod on rome-2 does not answer',
    },
    {
      name: "the gateway's own node, too",
      from: { leg: 'silent', gatewayLeg: 'silent' },
      hop: 'source node to gateway at rome/rome-1',
      why: 'nor does that of rome-2 itself',
    },
    {
      name: 'a single node and its gateway, though pings of the link fail because of it',
      from: { node: 'rome-2', leg: 'silent', gatewayLeg: 'silent', ...errors },
      to: errors,
      hop: 'source node to gateway at rome/rome-2',
      why: 'to the gateway pod on the same node',
    },
    {
      name: 'the overlay at the far end, when pings cross',
      to: { leg: 'silent' },
      hop: 'target gateway to node at milan/milan-1',
      why: 'the overlay of milan-1 to the gateway pod on milan-2',
    },
    {
      name: 'the far gateway, which its own node does not reach: not the tunnel, which is only the messenger',
      from: errors,
      to: { gatewayLeg: 'silent', leg: 'silent', ...errors },
      hop: 'target gateway at milan/milan-2',
      why: 'does not answer its own node milan-2',
    },
    {
      name: 'a tunnel without any handshake',
      from: neverShook,
      to: neverShook,
      hop: 'tunnel at rome - milan',
      why: 'WireGuard never shook hands (rome says Connecting, milan says Connecting)',
    },
    {
      name: 'a tunnel whose handshake is old',
      from: { connection: { value: 'Error', handshakeAt: now - 400_000 } },
      to: { connection: { value: 'Error', handshakeAt: now - 400_000 } },
      hop: 'tunnel at rome - milan',
      why: 'has not shaken hands for long',
    },
    {
      name: 'a tunnel with a fresh handshake and lost pings',
      from: errors,
      to: errors,
      hop: 'tunnel at rome - milan',
      why: 'shook hands 20 s ago, but pings do not cross',
    },
    {
      name: 'large packets lost between a node and its gateway',
      from: { leg: 'small-only' },
      more: { largeOnly: true },
      hop: 'path MTU at rome/rome-1',
      why: 'only small packets pass',
    },
    {
      name: 'large packets lost between the gateways',
      more: { largeOnly: true },
      hop: 'path MTU at rome - milan',
      why: '1340 bytes from rome and 1340 from milan',
    },
    {
      name: "a user's firewall that the far node could not apply",
      to: { hostErrors: ['FirewallConfiguration a/b: no chain'] },
      hop: 'target node at milan/milan-1',
      why: 'cannot apply FirewallConfiguration a/b: no chain',
    },
    {
      name: 'a pod that its own cluster does not reach either',
      more: { answersLocally: false },
      hop: 'target pod at milan/milan-1',
      why: 'does not answer its own cluster either',
    },
    {
      name: 'another source than the view of the pod',
      more: { source: { seen: '10.70.0.1', expected: '10.71.0.5' } },
      hop: 'source address at rome/rome-1',
      why: 'saw 10.70.0.1 instead of 10.71.0.5',
    },
    {
      name: 'a Service whose pods answer',
      more: { what: 'pod-to-service', directly: true },
      hop: 'service at rome/rome-1',
      why: 'the Service does not',
    },
    {
      name: 'a NodePort that only this machine does not reach',
      more: { what: 'outside-to-nodeport', directly: true, inside: true },
      hop: 'node port at rome/rome-1',
      why: 'this machine does not',
    },
    {
      name: 'an external host that its own cluster does not reach either',
      more: { what: 'pod-to-external', answersLocally: false },
      hop: 'external host at milan',
      why: 'does not answer the cluster behind which it is either',
    },
    {
      name: 'an external IP without an address',
      more: { what: 'pod-to-external', noAddress: 'its status has none' },
      hop: 'external host at milan',
      why: 'got no address',
    },
    {
      name: 'the kernel of the caller knowing no way',
      more: { failure: 'unreachable' },
      hop: 'source node at rome/rome-1',
      why: 'knows no way',
    },
    {
      name: "the caller's node, where the gateway's node gets an answer",
      more: { fromGatewayNode: true },
      hop: 'source node at rome/rome-1',
      why: 'answers callers on rome-2',
    },
    {
      name: 'the far node, where everything else works',
      more: { fromGatewayNode: false },
      hop: 'target node at milan/milan-1',
      why: 'overlay and tunnel work on both sides',
    },
  ])('is told: $name', ({ from, to, more, hop, why }) => {
    const found = failingHop(evidence({ ...(from && { from }), ...(to && { to }), ...(more && { more }) }));
    expect(`${found.hop} at ${found.at}`).toBe(hop);
    expect(found.why).toContain(why);
    expect(found.todo).not.toBe('');
  });

  const leg = fc.constantFrom<Leg | undefined>('works', 'small-only', 'silent', undefined);
  const anyEnd = fc.record({
    fabric: fc.boolean(),
    gatewayPods: fc.nat(2),
    process: fc.boolean(),
    overlay: fc.boolean(),
    leg,
    gatewayLeg: leg,
    connection: fc.constantFrom(undefined, { value: 'Connected' }, { value: 'Error' }, { value: 'Connecting' }),
  });
  const silent = (parts: object): Partial<EndEvidence> =>
    Object.fromEntries(Object.entries(parts).filter(([, value]) => value !== undefined));

  test('is always one with a place, a reason and a remedy, and what works is never blamed', () => {
    fc.assert(
      fc.property(anyEnd, anyEnd, fc.boolean(), (from, to, largeOnly) => {
        const all = evidence({ from: silent(from), to: silent(to), more: { largeOnly } });
        const { hop, at, why, todo } = failingHop(all);
        expect([at, why, todo].every((text) => text.length > 0 && !text.includes('undefined'))).toBe(true);
        if (hop === 'source node to gateway') expect(all.from.leg).toBe('silent');
        if (hop === 'target gateway to node') expect(all.to.leg).toBe('silent');
        if (hop === 'tunnel') expect([all.from, all.to].every((e) => e.connection?.value === 'Connected')).toBe(false);
      }),
    );
  });
});
