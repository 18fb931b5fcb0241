/** Labels, annotations, finalizers and well-known names of the network kinds: Liqo's verbatim (docs/design/networking.md#which-names-does-liqo-give), then ours. */

export const networkLabel = {
  gatewayResource: 'networking.liqo.io/gateway-resource',
  gatewayName: 'networking.liqo.io/gateway-name',
  gatewayNamespace: 'networking.liqo.io/gateway-namespace',
  /** `gateway` on gateway pods. */
  component: 'networking.liqo.io/component',
  /** `true` on the gateway pod that carries the traffic of its link. */
  active: 'networking.liqo.io/active',
  gatewayTemplate: 'networking.liqo.io/gatewaytemplate',
  internalFabricName: 'networking.liqo.io/internal-fabric-name',
  internalNodeName: 'networking.liqo.io/internal-node-name',
  hostUnreachable: 'networking.liqo.io/host-unreachable',
  gatewayMasqueradeBypass: 'networking.liqo.io/gateway-masquerade-bypass',
  firewallCategory: 'networking.liqo.io/firewall-category',
  firewallSubcategory: 'networking.liqo.io/firewall-subcategory',
  firewallUnique: 'networking.liqo.io/firewall-unique',
  routeCategory: 'networking.liqo.io/route-category',
  routeSubcategory: 'networking.liqo.io/route-subcategory',
  routeUnique: 'networking.liqo.io/route-unique',
  /** `pod` or `external`, on the Networks of a Configuration. */
  cidrType: 'configuration.liqo.io/cidr-type',
  /** One of `networkType`. */
  networkType: 'ipam.liqo.io/network-type',
  networkNotRemapped: 'ipam.liqo.io/network-not-remapped',
  networkShared: 'ipam.liqo.io/network-shared',
  ipType: 'ipam.liqo.io/ip-type',
  networkName: 'ipam.liqo.io/network-name',
  networkNamespace: 'ipam.liqo.io/network-namespace',
  endpointSlice: 'ipam.liqo.io/endpointslice',
  podName: 'offloading.liqo.io/pod-name',
  podNamespace: 'offloading.liqo.io/pod-namespace',
} as const;

/** Values of `networkLabel.networkType`. */
export const networkType = {
  pod: 'pod-cidr',
  service: 'service-cidr',
  external: 'external-cidr',
  internal: 'internal-cidr',
  reserved: 'reserved',
} as const;
export type NetworkType = (typeof networkType)[keyof typeof networkType];

/** Values of `networkLabel.ipType`. */
export const ipType = { apiServer: 'api-server', apiServerProxy: 'api-server-proxy' } as const;

/** Values of the category and subcategory labels (reference 2.3). */
export const target = {
  fabric: 'fabric',
  gateway: 'gateway',
  allNodes: 'all-nodes',
  singleNode: 'single-node',
  allGateways: 'all-gateways',
  fabricNode: 'fabric-node',
  ipMapping: 'ip-mapping',
} as const;

export const gatewayComponent = 'gateway';

export const networkAnnotation = {
  /** On Networks and IPs made at installation: no finalizer. */
  preinstalled: 'liqo.io/preinstalled',
  uninstalling: 'liqo.io/uninstalling',
  useDirectConnections: 'liqo.io/use-direct-connections',
  directConnectionsData: 'liqo.io/direct-connections-data',
  /** On an IP: the node on which its host answers. Gateways lead there; without it, or when there is no such node, through their own node. */
  servedBy: 'isthmus.dev/served-by',
} as const;

export const networkFinalizer = {
  network: 'network.ipam.liqo.io/finalizer',
  ip: 'ip.ipam.liqo.io/finalizer',
  ipMapping: 'ipmapping-nat-controller.liqo.io/finalizer',
  firewallConfiguration: 'firewallconfigurations-controller.liqo.io/finalizer',
  routeConfiguration: 'routeconfiguration-controller.liqo.io/finalizer',
  internalNode: 'internalnodes-route.liqo.io/finalizer',
  internalFabric: 'networking.liqo.io/internal-fabric-geneve-tunnel-finalizer',
  clusterRoleBinding: 'networking.liqo.io/clusterrolebinding',
} as const;

export const networkName = {
  /** Deployment, Service, Secret and Connection of a gateway. */
  gateway: (gateway: string): string => `gw-${gateway}`,
  /** Network for one range of a Configuration. */
  remoteNetwork: (configuration: string, type: 'pod' | 'external', cidr: string): string =>
    `${configuration}-${type}-${cidr.replaceAll(/[./]/g, '-')}`,
  unknownSource: (configuration: string): string => `${configuration}-unknown-source`,
  gatewayLease: (name: string, namespace: string, mode: 'server' | 'client'): string =>
    `${name}.${namespace}.${mode}.connections.liqo.io`,
  /** IP object by which peers see a node's own traffic; system namespace. Ours. */
  nodeIp: (node: string): string => `node-${node}`,
  serverTemplate: 'wireguard-server',
  clientTemplate: 'wireguard-client',
  reservedNetwork: (cidr: string): string => `reserved-${cidr.replaceAll(/[./]/g, '-')}`,
} as const;

/** DaemonSet, ServiceAccount and ClusterRole of the node process; system namespace. Ours. */
export const fabricName = 'isthmus-fabric';
/**
 * On Nodes and on pods. A Node that has it gets no pod of the DaemonSet: the agent's controllers run there and do the node's work in their
 * own process. On pods: this one does the work of its node.
 */
export const nodeProcessLabel = 'networking.isthmus.dev/node-process';
/** Values of `nodeProcessLabel`: beside the controllers, or alone in a pod of the DaemonSet. */
export const nodeProcess = { shared: 'shared', own: 'own' } as const;
export type NodeProcess = (typeof nodeProcess)[keyof typeof nodeProcess];
/** ClusterRole with what the node process may do in a tenant namespace: the maker of the gateway binds it there. */
/** On OpenShift: SecurityContextConstraints of gateways, and the ClusterRole by which the agent lets tenant namespaces use them. */
export const gatewayConstraintsRole = 'isthmus-gateway';
export const fabricTenantRole = 'isthmus-fabric-tenant';

/** Condition of a Configuration; counts only when its observedGeneration is the object's generation. */
export const networkCidrsConfigured = 'NetworkCIDRsConfigured';

/** Keys of a gateway's Secret, 32 raw bytes each, and where they are mounted. */
export const gatewayKeys = {
  privateKey: 'privateKey',
  publicKey: 'publicKey',
  mountPath: '/etc/wireguard/keys',
} as const;

export const networkPort = {
  wireGuard: 51_840,
  overlay: 6091,
  ping: 12_345,
  apiServerProxy: 8118,
  frontDoor: 8119,
} as const;
export const defaultMtu = 1340;

/** Ours, beside Liqo's. */
export const isthmusNetworkAnnotation = {
  /** On InternalFabrics: tunnel id of the overlay packets of this link, 24 bits, decimal. */
  vni: 'networking.isthmus.dev/vni',
  /** On GatewayServers and GatewayClients, JSON array of `address:port`: where the peer may be reached. */
  peerCandidates: 'networking.isthmus.dev/peer-candidates',
  /** On GatewayServers and GatewayClients, decimal: the size that the peer found on the path, in bytes. */
  peerMtu: 'networking.isthmus.dev/peer-mtu',
  /** Candidates of this side, reported by the gateway's controller. */
  candidates: 'networking.isthmus.dev/candidates',
  /** The UDP node port of this side's Service, decimal, reported by the gateway's controller. */
  nodePort: 'networking.isthmus.dev/node-port',
  /** On InternalNodes, by the node process: `kernel` where the kernel has WireGuard, else `userspace`. */
  wireGuard: 'networking.isthmus.dev/wireguard',
  /** On InternalNodes, by the node process, a comma list: connected routes, gateways and resolvers of the node. No peer is granted any of it. */
  nodeNetworks: 'networking.isthmus.dev/node-networks',
  /** On Networks of a Configuration, `true`: a PeeringPolicy names the range, which is kept as announced while it is free. */
  rangeNamed: 'networking.isthmus.dev/range-named',
  /** On a GatewayServer, GatewayClient or its template, `address:port` list with commas: where the peer reaches this side; takes precedence over the Service. */
  endpoint: 'networking.isthmus.dev/endpoint',
  /** On a GatewayClient, `NodePort` or `LoadBalancer`: give it a Service of that type, so that the peer can dial too. */
  listen: 'networking.isthmus.dev/listen',
  /** On Deployments and Services of gateways: digest of what was applied. */
  applied: 'networking.isthmus.dev/applied',
} as const;
