import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { gatewayModel } from '#agent/testing/network-models.ts';
import { stateText } from '../kernel/state-text.ts';
import type { GatewayModel } from './gateway-model.ts';
import { planGateway } from './gateway-plan.ts';

const octet = fc.integer({ min: 1, max: 254 });
const models = fc
  .record({
    strays: fc.uniqueArray(octet, { maxLength: 8 }),
    exposed: fc.uniqueArray(octet, { maxLength: 8 }),
    siblings: fc.uniqueArray(fc.integer({ min: 100, max: 140 }), { maxLength: 4 }),
  })
  .map(
    ({ strays, exposed, siblings }): GatewayModel => ({
      ...gatewayModel,
      strayPods: strays.map((n) => ({ ip: `10.200.99.${n}`, node: n % 2 ? 'node1' : 'node2' })),
      exposed: exposed.map((n) => ({ ip: `192.0.2.${n}`, exposed: `10.70.5.${n}` })),
      siblings: siblings.map((n) => ({
        link: `tenant-${n}/c`,
        remoteCidrs: [`10.${n}.0.0/16`],
        overlayAddress: `10.80.1.${n}`,
        underlayAddresses: n % 3 ? [`10.200.3.${n}`] : [],
        vni: n,
      })),
    }),
  );

const reversed = (model: GatewayModel): GatewayModel => ({
  ...model,
  nodes: [...model.nodes].reverse().map((node) => ({ ...node, sources: [...node.sources].reverse() })),
  strayPods: [...model.strayPods].reverse(),
  exposed: [...model.exposed].reverse(),
  hosts: [...model.hosts].reverse(),
  siblings: [...model.siblings].reverse(),
  remote: { pods: [...model.remote.pods].reverse(), external: [...model.remote.external].reverse() },
});

describe('the plan of a gateway', () => {
  test('is this for two nodes, a stray pod, a host and a sibling', async () => {
    await expect(stateText(planGateway(gatewayModel))).toMatchFileSnapshot('golden/two-nodes.txt');
  });

  test('translates nothing between ranges that do not overlap', () => {
    const same = (cidr: string) => ({ real: cidr, view: cidr });
    const remote = { pods: [same('10.210.0.0/16')], external: [same('10.75.0.0/16')] };
    const [table] = planGateway({ ...gatewayModel, remote }).tables;
    expect(table?.body).not.toContain('prefix');
  });

  test('is the mirror image at the client', () => {
    const { tunnel, routes } = planGateway({ ...gatewayModel, role: 'client' });
    expect(tunnel?.address).toBe('169.254.18.2/30');
    expect(routes.map(({ destination }) => destination)).toContain('169.254.18.1/32');
  });

  test('does not depend on the order of anything', () => {
    fc.assert(
      fc.property(models, (model) => {
        expect(planGateway(reversed(model))).toEqual(planGateway(model));
      }),
    );
  });

  test('has exactly one route more for one pod more', () => {
    fc.assert(
      fc.property(models, octet, (model, n) => {
        const pod = { ip: `10.200.98.${n}`, node: 'node2' };
        const [without, withPod] = [
          planGateway(model),
          planGateway({ ...model, strayPods: [...model.strayPods, pod] }),
        ];
        const more = withPod.routes.filter((route) => !without.routes.some((r) => r.destination === route.destination));
        expect(more.map(({ destination }) => destination)).toEqual([`${pod.ip}/32`]);
        const rest = withPod.routes.filter((route) => route !== more[0]);
        expect({ ...withPod, routes: rest }).toEqual(without);
      }),
    );
  });

  test('has no route for a pod inside the range of its own node', () => {
    const strayPods = [{ ip: '10.200.2.9', node: 'node2' }];
    expect(planGateway({ ...gatewayModel, strayPods })).toEqual(planGateway({ ...gatewayModel, strayPods: [] }));
  });

  test('makes packets to a sibling without an active gateway unreachable', () => {
    const siblings = gatewayModel.siblings.map((sibling) => ({ ...sibling, underlayAddresses: [] }));
    const { routes } = planGateway({ ...gatewayModel, siblings });
    expect(routes.filter(({ type }) => type === 'unreachable').map(({ destination }) => destination)).toEqual([
      'default',
      'default',
      '10.81.0.0/16',
      '10.82.0.0/16',
    ]);
  });

  test('leads to a host through the node that answers for it, and through its own while there is no such node', () => {
    const [ip, wayOf] = [
      '192.0.2.7',
      (node?: string) =>
        planGateway({ ...gatewayModel, hosts: [{ ip: '192.0.2.7', ...(node !== undefined && { node }) }] }).routes.find(
          ({ destination }) => destination === `${ip}/32`,
        ),
    ];
    const nodes = gatewayModel.nodes.map(({ name, own, overlayAddress }) => ({
      own,
      via: wayOf(name)?.via,
      overlayAddress,
    }));
    for (const { via, overlayAddress } of nodes) expect(via).toBe(overlayAddress);
    expect(wayOf()?.via).toBe(nodes.find(({ own }) => own)?.overlayAddress);
    expect(wayOf('gone')).toEqual(wayOf());
  });
});
