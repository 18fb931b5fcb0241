/** What nodes and gateways have in common on the overlay: the device, neighbours, encapsulated routes, and the guard of its port. */
import { boundsOf, byAddress } from '#shared/domain/cidr.ts';
import {
  type Encapsulation,
  type Neighbour,
  type NftTable,
  nftTable,
  type OverlayDevice,
  overlayDevice,
  overlayPort,
  type Route,
} from './kernel-state.ts';

/** Locally administered, and as distinct as overlay addresses are. */
export const macOf = (overlayAddress: string): string =>
  `02:69:${overlayAddress
    .split('.')
    .map((octet) => Number(octet).toString(16).padStart(2, '0'))
    .join(':')}`;

export const overlayOf = (address: string, mtu: number): OverlayDevice => ({
  name: overlayDevice,
  port: overlayPort,
  mtu,
  mac: macOf(address),
  address,
});

export const neighboursOf = (overlayAddresses: readonly string[]): Neighbour[] =>
  [...new Set(overlayAddresses)]
    .sort(byAddress)
    .map((address) => ({ device: overlayDevice, address, mac: macOf(address) }));

/** To a prefix behind another namespace on the overlay. */
export const routeThrough = (
  table: number,
  destination: string,
  overlayAddress: string,
  encap: Encapsulation,
  source?: string,
): Route => ({
  table,
  destination,
  device: overlayDevice,
  via: overlayAddress,
  onlink: true,
  encap,
  ...(source === undefined ? {} : { source }),
});

/** To that namespace itself. */
export const routeTo = (table: number, overlayAddress: string, encap: Encapsulation, source?: string): Route => ({
  table,
  destination: `${overlayAddress}/32`,
  device: overlayDevice,
  scope: 'link',
  encap,
  ...(source === undefined ? {} : { source }),
});

export const unreachable = (table: number, destination: string): Route => ({ table, destination, type: 'unreachable' });

/** A metadata VXLAN device listens on IPv6, too; our overlay has no IPv6 underlay, so that nothing legitimate arrives there. */
export const ip6Guard: NftTable = {
  family: 'ip6',
  name: nftTable,
  maps: {},
  body: `chain input {
  type filter hook input priority filter; policy accept;
  udp dport ${overlayPort} drop
}
`,
};

/** By table and destination, each of which is read once: a gateway may have a route for every pod. */
export const inOrder = (routes: readonly Route[]): Route[] =>
  routes
    .map((route) => ({
      route,
      table: Number(route.table),
      ...boundsOf(route.destination === 'default' ? '0.0.0.0/0' : route.destination),
    }))
    .sort((a, b) => a.table - b.table || a.first - b.first || b.last - a.last)
    .map(({ route }) => route);
