/**
 * What one gateway pod has to know. Inside the tunnel both ends use real addresses; outside it everything is this cluster's view of the peer
 * (reference 3.0). Each replica gets the same model; only the active one has a peer endpoint and keepalives.
 */
import type { WireGuardPeer } from '../kernel/kernel-state.ts';
import type { UserFirewall, UserRoutes } from '../kernel/user-configurations.ts';

export interface GatewayModel {
  /** namespace/name of the GatewayServer or GatewayClient. */
  readonly link: string;
  readonly role: 'server' | 'client';
  readonly mtu: number;
  /** Our pods' ranges, and the range in which we expose what is no pod of ours; its first address stands for unknown sources. */
  readonly local: { readonly pods: readonly string[]; readonly external: string };
  /** Equal prefix lengths in a pair; equal ranges need no translation. */
  readonly remote: { readonly pods: readonly View[]; readonly external: readonly View[] };
  readonly overlay: { readonly address: string; readonly vni: number };
  readonly nodes: readonly GatewayNode[];
  /** Pods outside their node's range: a route of their own. */
  readonly strayPods: readonly { readonly ip: string; readonly node: string }[];
  /** 1:1, both directions, from IP objects: nodes' own addresses, external hosts, pods of other peers. */
  readonly exposed: readonly { readonly ip: string; readonly exposed: string }[];
  /** Of `exposed`, what is no pod and no node: reached through `node`, or through the gateway's own. */
  readonly hosts: readonly { readonly ip: string; readonly node?: string }[];
  /** Other links of this cluster: packets between two peers go from gateway to gateway. */
  readonly siblings: readonly Sibling[];
  readonly wireGuard: GatewayWireGuard;
  readonly firewalls: readonly UserFirewall[];
  readonly routes: readonly UserRoutes[];
}

export interface View {
  readonly real: string;
  readonly view: string;
}

export interface GatewayNode {
  readonly name: string;
  readonly overlayAddress: string;
  /** Outer destination from this gateway: `nodeIP.local` on its own node, else `nodeIP.remote`. */
  readonly underlayAddress: string;
  /** Outer sources that count as this node. */
  readonly sources: readonly string[];
  /** Prefix routes: the node's own pod ranges. */
  readonly podCidrs: readonly string[];
  /** This node runs this replica. */
  readonly own: boolean;
}

export interface Sibling {
  readonly link: string;
  /** The sibling peer's ranges as this cluster sees them. */
  readonly remoteCidrs: readonly string[];
  readonly overlayAddress: string;
  /** Pod addresses of its replicas; the first is the active one. Empty: unreachable. */
  readonly underlayAddresses: readonly string[];
  readonly vni: number;
}

export interface GatewayWireGuard {
  /** `userspace` where the pod runs wireguard-go, `kernel` where the node process makes the device. */
  readonly implementation: 'kernel' | 'userspace';
  readonly listenPort: number;
  readonly privateKeyFile: string;
  /** Absent until the peer's PublicKey is known. */
  readonly peer?: WireGuardPeer;
}
