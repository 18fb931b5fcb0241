/** The network of a peering on the command line. */
import { type Command, InvalidArgumentError, Option } from 'commander';
import { type GatewayServiceType, gatewayServiceTypes, type NewPeeringNetwork } from '#shared/schema/api/network.ts';
import { Mtu } from '#shared/schema/definition/addresses.ts';

export interface NetworkOptions {
  readonly network?: boolean;
  readonly gatewayLocation?: 'consumer' | 'provider';
  readonly mtu?: number;
  readonly gatewayServiceType?: GatewayServiceType;
  readonly inBand?: boolean;
}

function mtu(text: string): number {
  const parsed = Mtu.safeParse(/^\d+$/.test(text) ? Number(text) : undefined);
  if (parsed.success) return parsed.data;
  throw new InvalidArgumentError('Accepted are whole numbers from 1280 to 65535.');
}

export const networkOptions = (command: Command): Command =>
  command
    .option('--network', 'link the two clusters, so that pods reach each other (default: when both agents can)')
    .option('--no-network', 'do not link the two clusters')
    .addOption(new Option('--gateway-location <side>', 'side that is dialled').choices(['consumer', 'provider']))
    .option('--mtu <bytes>', 'of the tunnel, at most; what the path lets through is measured', mtu)
    .addOption(
      new Option('--gateway-service-type <type>', 'how the dialled gateway is exposed').choices([
        ...gatewayServiceTypes,
      ]),
    )
    .option('--in-band', "reach the provider's API server through the link")
    .option('--no-in-band', "reach the provider's API server directly");

/** Undefined: nothing was said about the network. */
export function askedNetwork(options: NetworkOptions): NewPeeringNetwork | undefined {
  const { network, gatewayLocation, mtu: bytes, gatewayServiceType, inBand } = options;
  const requested: NewPeeringNetwork = {
    ...(network !== undefined && { enabled: network }),
    ...(gatewayLocation !== undefined && { gatewayLocation }),
    ...(bytes !== undefined && { mtu: bytes }),
    ...(gatewayServiceType !== undefined && { serviceType: gatewayServiceType }),
    ...(inBand !== undefined && { inBand }),
  };
  return Object.keys(requested).length > 0 ? requested : undefined;
}
