/** The networking module of a summary, as tables: docs/design/control-plane.md#how-is-a-peer-summed-up. */
import { expect, test } from 'vitest';
import type { Configuration } from '#shared/schema/liqo/configuration.ts';
import type { Connection } from '#shared/schema/liqo/connection.ts';
import type { GatewayClient } from '#shared/schema/liqo/gateway-client.ts';
import type { GatewayServer } from '#shared/schema/liqo/gateway-server.ts';
import { hasNetwork, type NetworkFacts, networkDrafts, noNetwork } from './network.ts';

const object = (kind: string, rest: object = {}): object => ({
  apiVersion: 'networking.liqo.io/v1beta1',
  kind,
  metadata: { name: 'p' },
  ...rest,
});
const configuration = object('Configuration') as Configuration;
const server = object('GatewayServer') as GatewayServer;
const client = object('GatewayClient') as GatewayClient;
const pods = (readyReplicas?: number, unavailableReplicas?: number) =>
  object('Deployment', { status: { readyReplicas, unavailableReplicas } }) as NonNullable<NetworkFacts['deployment']>;
const connection = (value?: string) => object('Connection', value ? { status: { value } } : {}) as Connection;

const missing = 'NetworkConfigurationStatus NotReady NetworkConfigurationMissing';
const present = 'NetworkConfigurationStatus Ready NetworkConfigurationPresence';
const noGateway = 'NetworkGatewayPresence NotReady GatewayMissing';
const gateway = 'NetworkGatewayPresence Ready GatewayPresence';
const noConnection = 'NetworkConnectionStatus NotReady ConnectionMissing';

test.each<{ readonly what: string; readonly facts: Partial<NetworkFacts>; readonly conditions: readonly string[] }>([
  { what: 'nothing', facts: {}, conditions: [] },
  { what: 'pods alone', facts: { deployment: pods(1) }, conditions: [] },
  { what: 'a Configuration', facts: { configuration }, conditions: [present, noGateway, noConnection] },
  {
    what: 'a server without pods',
    facts: { server },
    conditions: [missing, gateway, 'NetworkGatewayServerStatus NotReady GatewaysNotReady', noConnection],
  },
  {
    what: 'a client whose pods are ready',
    facts: { configuration, client, deployment: pods(2) },
    conditions: [present, gateway, 'NetworkGatewayClientStatus Ready GatewaysReady', noConnection],
  },
  {
    what: 'a server with one pod of two',
    facts: { configuration, server, deployment: pods(1, 1) },
    conditions: [present, gateway, 'NetworkGatewayServerStatus SomeNotReady GatewaysSomeNotReady', noConnection],
  },
  ...(
    [
      [undefined, 'Pending ConnectionPending'],
      ['Connecting', 'Pending ConnectionPending'],
      ['Connected', 'Established ConnectionEstablished'],
      ['Error', 'Error ConnectionError'],
      ['AnyOther', 'Error ConnectionError'],
    ] as const
  ).map(([value, condition]) => ({
    what: `a Connection that says ${value}`,
    facts: { connection: connection(value) },
    conditions: [missing, noGateway, `NetworkConnectionStatus ${condition}`],
  })),
])('with $what', ({ facts, conditions }) => {
  const all = { ...noNetwork, ...facts };
  expect(networkDrafts(all).map(({ type, status, reason }) => `${type} ${status} ${reason}`)).toEqual(conditions);
  expect(hasNetwork(all)).toBe(conditions.length > 0);
});

test('what the gateway waits for is in the message', () => {
  const message = 'Service gw-p of type LoadBalancer has no address yet';
  const conditions = [
    { type: 'Ready', status: 'False' as const, reason: 'NoLoadBalancerAddress', message, lastTransitionTime: '' },
  ];
  const [, , draft] = networkDrafts({ ...noNetwork, server: { ...server, status: { conditions } } });
  expect(draft?.message).toContain(message);
});
