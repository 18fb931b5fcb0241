import { expect, test } from 'vitest';
import type { ProbeResult } from '#shared/domain/network-probe.ts';
import type { What } from './evidence.ts';
import { halfOf, halfReport } from './home-half.ts';
import { legs, type TestSide } from './plan.ts';
import { reportText } from './print.ts';
import type { Side } from './side.ts';
import type { Ground } from './test-pods.ts';

const node = (name: string) => ({ name, address: '192.0.2.1', ready: true, process: true, overlay: true });
const rome: Side = {
  cluster: 'rome',
  peer: 'milan',
  image: 'agent',
  fullMasquerade: 'false',
  ranges: { configured: true, views: [] },
  gateway: { name: 'milan' },
  fabric: { address: '10.80.0.9', mtu: 1340 },
  activeNode: 'rome-1',
  gatewayPods: 1,
  connection: { value: 'Connected' },
  hostErrors: [],
  nodes: [node('rome-1'), node('rome-2')],
};
/** As Liqo's objects read: no node process, no active label, Liqo's own overlay. */
const milan: Side = {
  cluster: 'milan',
  peer: 'rome',
  liqo: 'v1.2.0',
  fullMasquerade: 'auto',
  ranges: { configured: true, views: [] },
  gateway: { name: 'rome' },
  gatewayPods: 1,
  connection: { value: 'Connected' },
  hostErrors: [],
  nodes: [{ ...node('milan-1'), process: false }],
};
const tested = (side: Side): TestSide => ({
  side,
  pods: side.nodes.map(({ name }) => ({ name: `host-${name}`, node: name, ip: '192.0.2.1', host: true })),
});

function report(home: Side, peer: Side, silent: readonly string[] = []) {
  const test = tested(home);
  const results = new Map(
    legs(test).map(({ id }): [string, ProbeResult] => {
      const ok = !silent.some((part) => id.includes(part));
      return [id, { id, ok, ms: 2, answeredBy: [], sources: [], ...(!ok && { failure: 'timeout' as const }) }];
    }),
  );
  const sides = new Map([home, peer].map((side) => [side.cluster, side]));
  return halfReport(home, peer, { results, sides, tests: new Map([[home.cluster, test]]), now: 0 });
}
const failures = ({ rows }: ReturnType<typeof report>) =>
  rows.flatMap(({ what, failing }): readonly [What, string, string][] =>
    failing ? [[what, `${failing.hop} ${failing.at}`, failing.todo]] : [],
  );

test.each([
  { sides: [rome, milan], home: 'rome' },
  { sides: [milan, rome], home: 'rome' },
  { sides: [rome, { ...rome, cluster: 'oslo' }], home: undefined },
  { sides: [milan, { ...milan, cluster: 'oslo' }], home: undefined },
])('the half that is tested is that of the one cluster that runs Isthmus: $home', ({ sides, home }) => {
  const [a, b] = sides.map((side) => ({ side }) as Ground);
  expect(halfOf([a as Ground, b as Ground])?.home.side.cluster).toBe(home);
});

test('a whole half and a link that both ends call connected pass, and what was not tried is said with what tries it', () => {
  const whole = report(rome, milan);
  expect(whole.rows.map(({ what, from, ok }) => `${what} ${from} ${ok}`)).toEqual([
    'node-to-gateway rome/rome-1 true',
    'node-to-gateway rome/rome-2 true',
    'gateway-to-peer rome true',
  ]);
  const text = reportText({ ...whole, missing: [] }, (_tone, word) => word);
  expect(text).toContain('not tested: the half of milan, which runs Liqo v1.2.0');
  expect(text).toContain('liqoctl test network');
  expect(text).toContain('all 3 probes got through');
});

test('a node of this half whose overlay is silent is named, and nothing else', () => {
  expect(failures(report(rome, milan, ['leg/rome/rome-2']))).toEqual([
    ['node-to-gateway', 'source node to gateway rome/rome-2', expect.stringContaining('UDP 6091')],
  ]);
  expect(failures(report(rome, milan, ['rome-2/large']))).toEqual([
    ['node-to-gateway', 'path MTU rome/rome-2', expect.stringContaining('--mtu')],
  ]);
});

test.each([
  { what: 'the ranges', side: { ranges: { configured: false, views: [] } }, hop: 'ranges' },
  { what: 'a gateway', side: { gateway: undefined, gatewayPods: 0, activeNode: undefined }, hop: 'source gateway' },
  { what: 'an active gateway pod', side: { activeNode: undefined }, hop: 'source gateway' },
] as const)('$what that this half lacks is found from its objects', ({ side, hop }) => {
  const found = failures(report({ ...rome, ...side } as Side, milan));
  expect(found.length).toBeGreaterThan(0);
  expect(found[0]?.[1]).toMatch(new RegExp(`^${hop} `));
});

test('a link that one end does not call connected is the fault of the tunnel, and the remedy asks for no node process of the peer', () => {
  const down = failures(report(rome, { ...milan, connection: { value: 'Connecting' } }));
  expect(down.map(([what, where]) => [what, where])).toEqual([['gateway-to-peer', 'tunnel rome - milan']]);
  expect(down[0]?.[2]).toContain('pods gw-rome in the tenant namespace of milan (it runs Liqo v1.2.0)');
  expect(down[0]?.[2]).not.toContain('node processes there');

  const without = { ...milan, gateway: undefined, connection: undefined } as unknown as Side;
  expect(failures(report(rome, without))).toMatchObject([
    ['gateway-to-peer', 'target gateway milan', expect.stringContaining('liqoctl network connect')],
  ]);
});
