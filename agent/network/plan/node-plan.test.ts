import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { nodeModel } from '#agent/testing/network-models.ts';
import { detectCni } from '../kernel/cni.ts';
import { stateText } from '../kernel/state-text.ts';
import type { NodeModel } from './node-model.ts';
import { planNode } from './node-plan.ts';

const link = (number: number): NodeModel['links'][number] => ({
  name: `tenant-${number}/c${number}`,
  remoteCidrs: [`10.${100 + number}.0.0/16`, `10.${150 + number}.0.0/16`],
  mtu: 1300 + number,
  ...(number % 4 === 0
    ? {}
    : { gateway: { overlayAddress: `10.80.1.${number}`, underlayAddress: `10.200.1.${100 + number}` } }),
  replicaAddresses: [`10.200.1.${100 + number}`, `10.200.2.${100 + number}`],
  vni: 1000 + number,
});

const models = fc
  .record({
    links: fc.uniqueArray(fc.integer({ min: 1, max: 40 }), { maxLength: 8 }),
    hosts: fc.uniqueArray(fc.integer({ min: 1, max: 200 }), { maxLength: 6 }),
    fullMasquerade: fc.boolean(),
  })
  .map(
    ({ links, hosts, fullMasquerade }): NodeModel => ({
      ...nodeModel,
      fullMasquerade,
      entrances: links.map((number) => 31_000 + number),
      links: links.map(link),
      masqueradedHosts: hosts.map((n) => ({ host: `192.0.2.${n}`, exposed: `10.70.4.${n}` })),
    }),
  );

const reversed = (model: NodeModel): NodeModel => ({
  ...model,
  podCidrs: [...model.podCidrs].reverse(),
  links: [...model.links].reverse().map((l) => ({
    ...l,
    remoteCidrs: [...l.remoteCidrs].reverse(),
    replicaAddresses: [...l.replicaAddresses].reverse(),
  })),
  masqueradedHosts: [...model.masqueradedHosts].reverse(),
  shortCuts: model.shortCuts?.toReversed(),
  entrances: [...model.entrances].reverse(),
});

describe('the plan of a node', () => {
  test('is this for one link and one masqueraded host', async () => {
    await expect(stateText(planNode(nodeModel))).toMatchFileSnapshot('golden/one-link.txt');
  });

  test('hides callers of a masqueraded host, and not those from peers when it answers here', () => {
    const [hidden, kept] = [{}, { isHere: true as const }].map((where) => {
      const masqueradedHosts = [{ host: '192.0.2.7', exposed: '10.70.4.1', ...where }];
      return planNode({ ...nodeModel, masqueradedHosts })
        .tables.map(({ body }) => body)
        .join();
    });
    const fromPeers = 'iifname "liqo-overlay" ct original ip daddr { 192.0.2.7 } masquerade\n';
    expect(hidden).toContain(fromPeers);
    expect(kept).toBe(hidden?.replace(`  ${fromPeers}`, ''));
  });

  test('leads overlay packets for gateways behind bridges to their ports', async () => {
    const shortCuts = [
      { to: '10.200.1.102', bridge: 'cni0', port: 'vethbb' },
      { to: '10.200.1.103', bridge: 'br-pods', port: 'vethcc' },
      { to: '10.200.1.101', bridge: 'cni0', port: 'vethaa' },
    ];
    const { tables } = planNode({ ...nodeModel, shortCuts });
    const [table] = tables.filter(({ family }) => family === 'netdev');
    expect(table?.optional).toBe(true);
    expect(table?.body).toBe(`chain short_cut_0 {
  type filter hook egress device "br-pods" priority filter; policy accept;
  ip daddr 10.200.1.103 udp dport 6091 fwd to "vethcc"
}
chain short_cut_1 {
  type filter hook egress device "cni0" priority filter; policy accept;
  ip daddr 10.200.1.101 udp dport 6091 fwd to "vethaa"
  ip daddr 10.200.1.102 udp dport 6091 fwd to "vethbb"
}
`);
    expect(planNode(reversed({ ...nodeModel, shortCuts }))).toEqual(planNode({ ...nodeModel, shortCuts }));
  });

  test('without an active gateway says "unreachable" at once', async () => {
    const { gateway: _, ...idle } = nodeModel.links[0]!;
    const { routes } = planNode({ ...nodeModel, links: [idle] });
    expect(routes.map(({ type, destination }) => `${type} ${destination}`)).toEqual([
      'unreachable 10.71.0.0/16',
      'unreachable 10.72.0.0/16',
    ]);
  });

  test('without links keeps the overlay shut', async () => {
    const { tables } = planNode({ ...nodeModel, links: [], masqueradedHosts: [] });
    expect(tables[0]?.body).toContain('udp dport 6091 counter drop');
    expect(tables[0]?.body).not.toContain('@th,96,24');
  });

  test('hides pods behind the node where the CNI gives nodes addresses of pods', () => {
    const [table] = planNode({ ...nodeModel, fullMasquerade: true }).tables;
    expect(table?.body).toContain('oifname "liqo-overlay" snat to 10.80.0.1');
    expect(table?.body).not.toContain('oifname "liqo-overlay" ip saddr');
  });

  test('does not depend on the order of anything', () => {
    fc.assert(
      fc.property(models, (model) => {
        expect(planNode(reversed(model))).toEqual(planNode(model));
      }),
    );
  });

  test('has one route per range of a peer, next to any other objects', () => {
    fc.assert(
      fc.property(models, (model) => {
        const wanted = model.links.flatMap(({ remoteCidrs }) => remoteCidrs).sort();
        const routed = planNode(model).routes.map(({ destination }) => destination);
        expect(routed.filter((cidr) => cidr.endsWith('/16')).sort()).toEqual(wanted);
      }),
    );
  });

  test.each(['kindnet', 'flannel', 'calico', 'cilium', 'bridge', 'aws'] as const)(
    'on a node with %s keeps sources by its rules',
    async (name) => {
      const cni = detectCni({ configurations: { [`10-${name}.conflist`]: configurationOf(name) }, daemonSets: [] });
      expect(cni.name).toBe(name);
      const state = planNode({ ...nodeModel, cni, fullMasquerade: cni.fullMasquerade, rulePriority: cni.rulePriority });
      await expect(stateText(state)).toMatchFileSnapshot(`golden/cni-${name}.txt`);
    },
  );
});

const configurationOf = (name: string): string =>
  JSON.stringify({
    name: {
      bridge: 'bridge',
      kindnet: 'kindnet',
      flannel: 'cbr0',
      calico: 'k8s-pod-network',
      cilium: 'cilium',
      aws: 'aws-cni',
    }[name],
    plugins: [
      {
        type: {
          bridge: 'bridge',
          kindnet: 'ptp',
          flannel: 'flannel',
          calico: 'calico',
          cilium: 'cilium-cni',
          aws: 'aws-cni',
        }[name],
      },
      { type: 'portmap' },
    ],
  });
