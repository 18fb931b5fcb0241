/**
 * What Isthmus owns in one network namespace, as data: rendered from a model, compared with what the kernel has, applied by `namespace.ts`.
 * Everything owned is recognisable by itself (names, table numbers, protocol), so that a sweep needs no memory of earlier runs.
 */

/** Of every route, rule, neighbour that we add: `proto` in iproute2's words. Nothing else on a node uses it. */
export const ownedProtocol = 143;

/** Our own nft tables, families `ip` and `ip6`. */
export const nftTable = 'isthmus';
/** An empty chain of this name marks a table that we made for a FirewallConfiguration. */
export const ownedChain = 'isthmus-owned';

export const overlayDevice = 'liqo-overlay';
export const tunnelDevice = 'liqo-tunnel';
export const overlayPort = 6091;
export const pingPort = 12_345;

/** Policy-routing tables. User-written RouteConfigurations have numbers of their own (reference 1.8). */
/** The kernel's own table of addresses that are here. */
export const localTable = 255;

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
  /** `kernel`: `apply` makes the device. `userspace`: wireguard-go has made it, or will. */
  readonly implementation: 'kernel' | 'userspace';
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
  readonly type?: 'unicast' | 'unreachable' | 'local';
  readonly device?: string;
  readonly via?: string;
  readonly onlink?: boolean;
  readonly encap?: Encapsulation;
  readonly source?: string;
  readonly scope?: 'global' | 'link' | 'host' | 'site' | 'nowhere';
  readonly metric?: number;
  /** Bytes; where it differs from the device's. */
  readonly mtu?: number;
  /** namespace/name of the RouteConfiguration that asks for it: its failure is that object's, not ours. */
  readonly configuration?: string;
}

export interface Rule {
  /** Absent: the kernel picks, as for RouteConfigurations that name none. */
  readonly priority?: number;
  readonly table: number;
  readonly from?: string;
  readonly to?: string;
  readonly iif?: string;
  readonly oif?: string;
  readonly fwmark?: number;
  readonly configuration?: string;
}

export interface Neighbour {
  readonly device: string;
  readonly address: string;
  readonly mac: string;
}

const nftFamilies = ['ip', 'ip6', 'inet', 'arp', 'netdev', 'bridge'] as const;
export type NftFamily = (typeof nftFamilies)[number];

/** One nft table, replaced as a whole in one transaction when `body` changes; elements of `maps` are added and removed one by one. */
export interface NftTable {
  readonly family: NftFamily;
  readonly name: string;
  /** Chains, as `nft -f` reads them between the braces of the table. */
  readonly body: string;
  /** Named maps `ipv4_addr : ipv4_addr`. */
  readonly maps: Readonly<Record<string, Readonly<Record<string, string>>>>;
  /** namespace/name of the FirewallConfiguration that asks for it: its failure is that object's, not ours. */
  readonly configuration?: string;
  /** Makes packets faster and nothing else: loaded by itself, and not having it is no failure. */
  readonly optional?: boolean;
}

/** A configuration that cannot be carried out, and why. */
export interface Refusal {
  /** namespace/name */
  readonly configuration: string;
  readonly message: string;
}

/** All of it. Order of lists carries no meaning. */
export interface KernelState {
  /**
   * The kernel looks into its local table before every rule, so that a peer's address that happens to be one of ours here would never be
   * forwarded. True: that first look goes, and `rules` says where it takes place instead.
   */
  readonly ownLocalRule?: boolean;
  /**
   * Names of the maps by which sources and destinations are translated. Where they are given the namespace is ours alone, and flows whose
   * translation changes are forgotten: the kernel would go on with the old one for as long as they last.
   */
  readonly translation?: { readonly sources: string; readonly destinations: string };
  /**
   * UDP ports that another component translates. Whenever our tables are loaded, conntrack entries for untranslated flows to these ports are deleted:
   * they began before the tables blocked such flows.
   */
  readonly entrances?: readonly number[];
  /**
   * True: the namespace has other ways out, and another component translates what leaves by them. When the first route of ours through the overlay
   * leads to a destination, conntrack entries of flows to it are deleted: the kernel would give them the source of the other way for as long as they last.
   */
  readonly claimsFlows?: true;
  readonly overlay?: OverlayDevice;
  readonly tunnel?: TunnelDevice;
  readonly neighbours: readonly Neighbour[];
  readonly routes: readonly Route[];
  readonly rules: readonly Rule[];
  readonly tables: readonly NftTable[];
  /** Own tables of which it is not known yet whether they are wanted: one that is there stays as it is. */
  readonly undecided?: readonly Pick<NftTable, 'family' | 'name'>[];
  /** Keys as `sysctl` has them with slashes (device names hold dots), to value; only ever set, never restored. */
  readonly sysctls: Readonly<Record<string, string>>;
  readonly refused: readonly Refusal[];
}
