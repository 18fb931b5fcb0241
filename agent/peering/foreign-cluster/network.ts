/** The networking module of a peer's summary (docs/design/control-plane.md#how-is-a-peer-summed-up), from what exists for the link. Pure. */
import { handshakeCondition } from '#agent/network/gateway/connection/decide.ts';
import { findCondition } from '#kube/writes/conditions.ts';
import type { Deployment } from '#shared/domain/core-kinds.ts';
import { networkCidrsConfigured } from '#shared/domain/network-keys.ts';
import type { Configuration } from '#shared/schema/liqo/configuration.ts';
import type { Connection } from '#shared/schema/liqo/connection.ts';
import type { ForeignClusterCondition } from '#shared/schema/liqo/foreign-cluster.ts';
import type { GatewayClient } from '#shared/schema/liqo/gateway-client.ts';
import type { GatewayServer } from '#shared/schema/liqo/gateway-server.ts';

export interface NetworkFacts {
  readonly configuration: Configuration | undefined;
  readonly server: GatewayServer | undefined;
  readonly client: GatewayClient | undefined;
  /** Of the gateway that there is. */
  readonly deployment: Deployment | undefined;
  readonly connection: Connection | undefined;
}

export const noNetwork: NetworkFacts = {
  configuration: undefined,
  server: undefined,
  client: undefined,
  deployment: undefined,
  connection: undefined,
};

type Draft = Pick<ForeignClusterCondition, 'type' | 'status' | 'reason' | 'message'>;

/** The module is on while any of them is there; a Deployment alone is a leftover. */
export const hasNetwork = ({ configuration, server, client, connection }: NetworkFacts): boolean =>
  [configuration, server, client, connection].some((one) => one !== undefined);

export function networkDrafts(facts: NetworkFacts): readonly Draft[] {
  if (!hasNetwork(facts)) return [];
  const { server, client } = facts;
  return [
    configurationDraft(facts.configuration),
    presenceDraft(server ?? client),
    ...(server === undefined ? [] : [gatewayDraft('NetworkGatewayServerStatus', server, facts.deployment)]),
    ...(client === undefined ? [] : [gatewayDraft('NetworkGatewayClientStatus', client, facts.deployment)]),
    connectionDraft(facts.connection),
  ];
}

function configurationDraft(configuration: Configuration | undefined): Draft {
  const type = 'NetworkConfigurationStatus';
  if (configuration === undefined) {
    const message = 'no Configuration names the ranges of the peer; create one in its tenant namespace';
    return { type, status: 'NotReady', reason: 'NetworkConfigurationMissing', message };
  }
  // Present counts as Ready, as in Liqo; what is still missing is said in words.
  const mapped = findCondition(configuration.status?.conditions, networkCidrsConfigured);
  const message =
    mapped?.status === 'True' ? 'the ranges of the peer are mapped' : mapped?.message || 'the ranges are being mapped';
  return { type, status: 'Ready', reason: 'NetworkConfigurationPresence', message };
}

const presenceDraft = (gateway: GatewayServer | GatewayClient | undefined): Draft => {
  const type = 'NetworkGatewayPresence';
  return gateway === undefined
    ? {
        type,
        status: 'NotReady',
        reason: 'GatewayMissing',
        message: 'there is no GatewayServer and no GatewayClient for the peer; create one of them',
      }
    : { type, status: 'Ready', reason: 'GatewayPresence', message: `${gateway.kind} ${gateway.metadata.name}` };
};

function gatewayDraft(
  type: 'NetworkGatewayServerStatus' | 'NetworkGatewayClientStatus',
  gateway: GatewayServer | GatewayClient,
  deployment: Deployment | undefined,
): Draft {
  const { readyReplicas = 0, unavailableReplicas = 0 } = deployment?.status ?? {};
  const said = findCondition(gateway.status?.conditions, 'Ready');
  const why = said === undefined || said.status === 'True' ? '' : `: ${said.message}`;
  if (readyReplicas === 0)
    return { type, status: 'NotReady', reason: 'GatewaysNotReady', message: `no gateway pod is ready${why}` };
  const message = `${readyReplicas} of ${readyReplicas + unavailableReplicas} gateway pods ready${why}`;
  return unavailableReplicas > 0
    ? { type, status: 'SomeNotReady', reason: 'GatewaysSomeNotReady', message }
    : { type, status: 'Ready', reason: 'GatewaysReady', message };
}

function connectionDraft(connection: Connection | undefined): Draft {
  const type = 'NetworkConnectionStatus';
  if (connection === undefined) {
    const message = 'there is no Connection yet; the conditions of the gateway say what is missing';
    return { type, status: 'NotReady', reason: 'ConnectionMissing', message };
  }
  const value = connection.status?.value ?? 'Connecting';
  if (value === 'Connecting')
    return { type, status: 'Pending', reason: 'ConnectionPending', message: 'the peer has not answered yet' };
  // No latency in it: that changes with every ping.
  if (value === 'Connected')
    return { type, status: 'Established', reason: 'ConnectionEstablished', message: 'the peer answers' };
  const said = findCondition(connection.status?.conditions, handshakeCondition)?.message;
  const message = said ?? `the link does not work (${value}), says Connection ${connection.metadata.name}`;
  return { type, status: 'Error', reason: 'ConnectionError', message };
}
