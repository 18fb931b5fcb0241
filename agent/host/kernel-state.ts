/**
 * What Isthmus owns in one network namespace, as data: rendered from a model, compared with what the kernel has, applied by `apply.ts`.
 * Everything owned is recognisable by itself (names, table numbers, protocol), so that a sweep needs no memory of earlier runs.
 */

/** Of every route, rule, neighbour that we add: `proto` in iproute2's words. Nothing else on a node uses it. */
export const ownedProtocol = 143;

/** The one nft table, family `ip`. */
export const nftTable = 'isthmus';

export const overlayDevice = 'liqo-overlay';
export const tunnelDevice = 'liqo-tunnel';
export const overlayPort = 6091;

/** Policy-routing tables. User-written RouteConfigurations have numbers of their own (reference 1.8). */
export const routingTables = { node: 1814300, fromOverlay: 1814301, fromTunnel: 1814302 } as const;

/** A metadata-mode VXLAN device: tunnel id and destination come from the route. No learning, no ARP. */
export interface OverlayDevice {
  readonly name: string;
  readonly port: number;
  readonly mtu: number;
  /** Distinct per namespace; derived from the overlay address. */
  readonly mac: string;
  /** Our overlay address, a /32. */
  readonly address: string;
}

export interface WireGuardPeer {
  /** 32 bytes, base64. */
  readonly publicKey: string;
  /** `address:port`. Absent: wait for the peer. Changing it never drops a session by itself. */
  readonly endpoint?: string;
  readonly keepaliveSeconds?: number;
}

/** The tunnel device. AllowedIPs of the one peer are 0.0.0.0/0, as the reference has it; nft decides what may pass. */
export interface TunnelDevice {
  readonly name: string;
  readonly mtu: number;
  /** Ours, with prefix length: 169.254.18.1/30 of the server, .2/30 of the client. */
  readonly address: string;
  readonly listenPort: number;
  /** Where the 32 raw bytes are (a mounted Secret, seen through /proc/PID/root): a key is never data here. */
  readonly privateKeyFile: string;
  readonly peer?: WireGuardPeer;
}

export interface Encapsulation {
  readonly vni: number;
  /** Outer destination. */
  readonly destination: string;
}

export interface Route {
  readonly table: number | 'main';
  /** CIDR or `default`. */
  readonly destination: string;
  readonly type?: 'unicast' | 'unreachable';
  readonly device?: string;
  readonly via?: string;
  readonly onlink?: boolean;
  readonly encap?: Encapsulation;
  readonly source?: string;
  readonly scope?: 'global' | 'link' | 'host' | 'site' | 'nowhere';
  readonly mtu?: number;
  readonly metric?: number;
}

export interface Rule {
  readonly priority: number;
  readonly table: number;
  readonly from?: string;
  readonly to?: string;
  readonly iif?: string;
  readonly oif?: string;
  readonly fwmark?: number;
}

export interface Neighbour {
  readonly device: string;
  readonly address: string;
  readonly mac: string;
}

/** All of it. Order of lists carries no meaning, except inside `ruleset`. */
export interface KernelState {
  readonly overlay?: OverlayDevice;
  readonly tunnel?: TunnelDevice;
  readonly neighbours: readonly Neighbour[];
  readonly routes: readonly Route[];
  readonly rules: readonly Rule[];
  /** Statements of `nft -f`: our whole table, which `apply` replaces in one transaction. Empty: no table. */
  readonly ruleset: string;
  /** `net.ipv4.…` to value; only ever set, never restored. */
  readonly sysctls: Readonly<Record<string, string>>;
}
