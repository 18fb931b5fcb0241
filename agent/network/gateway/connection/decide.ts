/**
 * What to check when the two ends of a link do not find each other. Neither side can see which of them is wrong, so each reports the facts that it
 * uses. Pure.
 */
import { pingTiming } from '#agent/network/link/ping/decide.ts';
import type { ConditionInput } from '#kube/writes/conditions.ts';
import type { Connection } from '#shared/schema/liqo/connection.ts';
import type { GatewayClient } from '#shared/schema/liqo/gateway-client.ts';
import type { GatewayServer } from '#shared/schema/liqo/gateway-server.ts';
import type { PublicKey } from '#shared/schema/liqo/public-key.ts';

/** Its only condition, there for as long as something is wrong. */
export const handshakeCondition = 'Handshake';

export interface LinkFacts {
  readonly connection: Connection;
  readonly peer: string;
  readonly gateway: GatewayServer | GatewayClient | undefined;
  /** What the peer is expected to have. */
  readonly publicKey: PublicKey | undefined;
  /** Base64. */
  readonly ownKey: string | undefined;
}

export const isInTrouble = ({ status }: Connection): boolean => status?.value === 'Error';

export function handshakeAdvice(facts: LinkFacts): ConditionInput | undefined {
  const { connection, peer } = facts;
  if (!isInTrouble(connection)) return undefined;
  const type = handshakeCondition;
  const seconds = pingTiming.errorMs / 1_000;
  if (connection.status?.lastHandshakeTime !== undefined)
    return {
      type,
      status: 'True',
      reason: 'NoAnswer',
      message: `${peer} has the right key, but answers no ping for ${seconds} s: look at the gateway pod of ${peer} and at the node process beside it`,
    };
  const message = `no handshake with ${peer} in ${seconds} s. One of these is wrong: ${suspects(facts).join('; ')}`;
  return { type, status: 'False', reason: 'NoHandshake', message };
}

function suspects({ connection, peer, gateway, publicKey, ownKey }: LinkFacts): string[] {
  const expected =
    publicKey === undefined
      ? []
      : [
          `the key of the gateway of ${peer} has to be ${publicKey.spec.publicKey} (PublicKey ${publicKey.metadata.name})`,
        ];
  const own = ownKey === undefined ? [] : [`the PublicKey at ${peer} has to hold ${ownKey}, the key of this side`];
  return [...expected, ...own, addressesBetween(connection, peer, gateway)];
}

interface Endpoint {
  readonly addresses?: readonly string[] | undefined;
  readonly port?: number | undefined;
}

function addressesBetween({ spec }: Connection, peer: string, gateway: LinkFacts['gateway']): string {
  // A client names where its peer is, a server has found where it is itself.
  const named: Endpoint | undefined = spec.type === 'Client' ? gateway?.spec.endpoint : gatewayEndpoint(gateway);
  const { addresses = [], port } = named ?? {};
  const at = addresses.map((address) => `${address}:${port}`).join(' or ');
  if (spec.type === 'Client')
    return `UDP from here has to reach the gateway of ${peer} at ${at || 'the endpoint of the GatewayClient'}`;
  return `UDP from ${peer} has to reach this gateway at ${at || 'the endpoint of the GatewayServer'}, which the GatewayClient there has to name`;
}

const gatewayEndpoint = (gateway: LinkFacts['gateway']): Endpoint | undefined =>
  (gateway as GatewayServer | undefined)?.status?.endpoint;
