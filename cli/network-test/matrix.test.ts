import { describe, expect, test } from 'vitest';
import type { ProbeResult } from '#shared/domain/network-probe.ts';
import { type Matrix, matrixOf, type TestSide, viewOf } from './plan.ts';
import { reportText } from './print.ts';
import type { Side } from './side.ts';
import { verdictsOf } from './verdict.ts';

const views = [
  { real: '10.50.0.0/16', view: '10.51.0.0/16' },
  { real: '10.70.0.0/16', view: '10.72.0.0/16' },
];

function side(cluster: string, peer: string, nodes: number): Side {
  return {
    cluster,
    peer,
    image: 'agent',
    fullMasquerade: 'false',
    ranges: { configured: true, views },
    gateway: { name: peer },
    fabric: { address: '10.80.0.9', mtu: 1340 },
    activeNode: `${cluster}-1`,
    gatewayPods: 1,
    connection: { value: 'Connected' },
    hostErrors: [],
    nodes: Array.from({ length: nodes }, (_, i) => ({
      name: `${cluster}-${i + 1}`,
      address: `192.0.2.${i + 1}`,
      ready: true,
      process: true,
      overlay: true,
      exposed: `10.70.0.${i + 1}`,
    })),
  };
}

function testSide(cluster: string, peer: string, nodes: number, more: Partial<Side> = {}): TestSide {
  const all = { ...side(cluster, peer, nodes), ...more };
  return {
    side: all,
    service: { clusterIp: '10.96.0.9', nodePort: 30_000 },
    external: { ip: '198.51.100.7', port: 80, exposed: '10.70.0.99' },
    pods: all.nodes.flatMap(({ name, address }, i) => [
      { name: `pod-${name}`, node: name, ip: `10.50.${i}.5`, host: false },
      { name: `host-${name}`, node: name, ip: address, host: true },
    ]),
  };
}

const rome = testSide('rome', 'milan', 2);
const milan = testSide('milan', 'rome', 1);
const matrix = matrixOf(rome, milan, { basic: false, nodePort: true });

/** Everything works, as real clusters would answer; but for what `change` says. */
function answers(of: Matrix, change: (id: string) => Partial<ProbeResult> | undefined = () => undefined) {
  const good = (id: string, sources: readonly string[]): [string, ProbeResult] => [
    id,
    { id, ok: true, ms: 3, answeredBy: [], sources, ...change(id) },
  ];
  return new Map([
    ...of.rows.flatMap((row) => row.probes.map(({ id }) => good(id, row.sources.slice(0, 1)))),
    ...of.inner.map(({ id }) => good(id, [])),
  ]);
}
const outcomeOf = (results: ReadonlyMap<string, ProbeResult>, [a, b] = [rome, milan]) => ({
  results,
  sides: new Map([a, b].map((test) => [test.side.cluster, test.side])),
  tests: new Map([a, b].map((test) => [test.side.cluster, test])),
  now: 0,
});
const silentIds =
  (...silent: readonly string[]) =>
  (id: string) =>
    silent.some((part) => id.includes(part)) ? { ok: false, sources: [], failure: 'timeout' as const } : undefined;

describe('the matrix', () => {
  test('calls each way from every node: pods, Services, nodes, NodePorts from inside and outside, external IPs', () => {
    const counted: Record<string, number> = {};
    for (const { what, from } of matrix.rows) {
      const key = `${from.cluster} ${what}`;
      counted[key] = (counted[key] ?? 0) + 1;
    }
    expect(counted).toEqual({
      'rome pod-to-pod': 2,
      'rome pod-to-service': 2,
      'rome node-to-pod': 2,
      'rome pod-to-nodeport': 4,
      'rome outside-to-nodeport': 2,
      'rome pod-to-external': 2,
      'milan pod-to-pod': 2,
      'milan pod-to-service': 1,
      'milan node-to-pod': 2,
      'milan pod-to-nodeport': 1,
      'milan outside-to-nodeport': 1,
      'milan pod-to-external': 1,
    });
    expect(new Set(matrix.rows.map(({ id }) => id)).size).toBe(matrix.rows.length);
  });

  test('has pods alone when asked for the basics', () => {
    const basic = matrixOf(rome, milan, { basic: true, nodePort: true });
    expect(new Set(basic.rows.map(({ what }) => what))).toEqual(new Set(['pod-to-pod']));
  });

  test("goes to what the caller's cluster calls the address, and expects what the receiver's calls the caller", () => {
    const [row] = matrix.rows;
    expect(row).toMatchObject({ address: '10.51.0.5', sources: ['10.51.0.5'] });
    expect(matrix.rows.find(({ what, from }) => what === 'node-to-pod' && from.node === 'rome-2')?.sources).toEqual([
      '10.72.0.2',
    ]);
    expect(viewOf(rome.side, '10.90.0.1')).toBeUndefined();
  });

  test.each([
    { fullMasquerade: 'true', sources: ['10.72.0.1'] },
    { fullMasquerade: 'auto', sources: ['10.51.0.5', '10.72.0.1'] },
    { fullMasquerade: 'false', sources: ['10.51.0.5'] },
  ] as const)('with full masquerade $fullMasquerade a pod is seen as $sources', ({ fullMasquerade, sources }) => {
    const hidden = testSide('rome', 'milan', 1, { fullMasquerade });
    expect(matrixOf(hidden, milan, { basic: true, nodePort: false }).rows[0]?.sources).toEqual(sources);
  });
});

describe('verdicts', () => {
  test('are all good where everything answers', () => {
    const rows = verdictsOf(matrix, outcomeOf(answers(matrix)));
    expect(rows.every(({ ok }) => ok)).toBe(true);
    expect(reportText({ rows, missing: [] }, (_tone, text) => text)).toContain(`all ${rows.length} probes got through`);
  });

  test('blame the overlay of one node for all that fails there, Services and NodePorts included', () => {
    // All traffic through that node: of its pods, of itself, and calls of its NodePort.
    const through = [
      'rome-2/milan/',
      'milan-1/rome/rome-2',
      'pod-to-service/milan',
      'nodeport/milan',
      'leg/rome/rome-2',
    ];
    const calledThere = ['rome-1', 'rome-2', 'here'].map((by) => `nodeport/rome/${by}/rome-2`);
    const toOthers = ['pod-to-service/rome/rome-2', 'pod-to-external/rome/rome-2'];
    const silent = silentIds(...through, ...calledThere, ...toOthers);
    const rows = verdictsOf(matrix, outcomeOf(answers(matrix, silent)));
    const hops = new Set(rows.filter(({ ok }) => !ok).map(({ failing }) => `${failing?.hop} ${failing?.at}`));
    expect(hops).toEqual(new Set(['source node to gateway rome/rome-2', 'target gateway to node rome/rome-2']));
    const text = reportText({ rows, missing: [] }, (_tone, word) => word);
    expect(text).toMatch(/source node to gateway at rome\/rome-2: the overlay of rome-2 .* does not answer/);
    expect(text).toContain('let UDP 6091 pass between rome-2 and the gateway pod');
  });

  test('fail a probe that got through with a foreign source address', () => {
    const wrong = (id: string) => (id.startsWith('pod-to-pod/rome/rome-1') ? { sources: ['10.72.0.1'] } : undefined);
    const failed = verdictsOf(matrix, outcomeOf(answers(matrix, wrong))).filter(({ ok }) => !ok);
    expect(failed).toMatchObject([{ from: 'rome/rome-1', ms: 3, failing: { hop: 'source address' } }]);
  });

  test('tell large packets that get lost from those that all do', () => {
    const failed = verdictsOf(matrix, outcomeOf(answers(matrix, silentIds('+large')))).filter(({ ok }) => !ok);
    expect(new Set(failed.map(({ what, failing }) => `${what} ${failing?.hop}`))).toEqual(
      new Set(['pod-to-pod path MTU']),
    );
  });

  test('name the external host where its own cluster gets no answer either, and the address that was not granted', () => {
    const results = answers(matrix, silentIds('pod-to-external', 'local-host/'));
    const failed = verdictsOf(matrix, outcomeOf(results)).filter(({ ok }) => !ok);
    expect(new Set(failed.map(({ failing }) => failing?.hop))).toEqual(new Set(['external host']));

    const ungranted = { ...milan, external: { ip: '198.51.100.7', port: 80 } };
    const without = matrixOf(rome, ungranted, { basic: false, nodePort: false });
    const [first] = verdictsOf(without, outcomeOf(answers(without), [rome, ungranted])).filter(({ ok }) => !ok);
    expect(first?.failing?.why).toContain('got no address');
  });
});
