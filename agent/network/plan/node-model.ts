/** What a node has to know to send packets to peers and to receive theirs. Made by the runtime from objects; read by `plan.ts`. */
import type { CniTraits } from '../kernel/cni.ts';
import type { UserFirewall, UserRoutes } from '../kernel/user-configurations.ts';

export interface NodeModel {
  readonly node: string;
  /** Our pods' ranges. */
  readonly podCidrs: readonly string[];
  /** Of this node on the overlay (InternalNode.spec.interface.node.ip): also the source of everything that is no pod. */
  readonly overlayAddress: string;
  readonly links: readonly NodeLink[];
  /** Underlay addresses from which overlay packets may come besides the gateways' own: nodes that host a gateway, when a CNI masquerades. */
  readonly gatewayNodeAddresses: readonly string[];
  /** UDP node ports of gateways' Services: packets to them belong to the cluster's proxy, never to this node itself. */
  readonly entrances: readonly number[];
  /**
   * Where this node's gateway pods are plugged into a bridge; undefined until each pod was inspected: ports from an earlier run stay valid meanwhile.
   */
  readonly shortCuts: readonly ShortCut[] | undefined;
  /** IP objects with `masquerade: true`: callers of the host are hidden behind this node; local pods may use `exposed` too. */
  readonly masqueradedHosts: readonly ExposedHost[];
  /** Pods, too, reach peers by the node's address (CNIs that give nodes addresses of the pod range). */
  readonly fullMasquerade: boolean;
  /** Set where a CNI adds rules of its own (AWS); 101 unless told. */
  readonly rulePriority: number;
  /** The kernel can tell packets of open connections by their socket. */
  readonly matchesSockets: boolean;
  /** What the CNI of this node does, from `host/cni.ts`; a CNI that masquerades with netfilter where none was recognised. */
  readonly cni?: CniTraits;
  readonly firewalls: readonly UserFirewall[];
  readonly routes: readonly UserRoutes[];
}

/**
 * A bridge cuts what leaves the node through it into single packets where they are encapsulated, however large the segments that its ports could
 * take: overlay packets for a gateway go to its port directly.
 */
export interface ShortCut {
  /** Pod address of the gateway. */
  readonly to: string;
  readonly bridge: string;
  readonly port: string;
}

export interface ExposedHost {
  readonly host: string;
  readonly exposed: string;
  /** It answers on this node, where answers pass on their way back: callers from peers keep their addresses. */
  readonly isHere?: true;
}

export interface NodeLink {
  /** namespace/name of the gateway. */
  readonly name: string;
  /** The peer's pod and external ranges as this cluster sees them. */
  readonly remoteCidrs: readonly string[];
  readonly mtu: number;
  /** Absent while no gateway pod is active: packets to the peer get "unreachable" at once instead of leaving by the default route. */
  readonly gateway?: NodeGateway;
  /** All replicas' pod addresses: packets of a gateway that was active a moment ago still count. */
  readonly replicaAddresses: readonly string[];
  readonly vni: number;
}

interface NodeGateway {
  /** InternalFabric.spec.interface.gateway.ip */
  readonly overlayAddress: string;
  /** Pod IP of the active replica. */
  readonly underlayAddress: string;
}
