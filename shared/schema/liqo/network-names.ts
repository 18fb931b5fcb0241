/** What the network kinds are called, without their schemas: the node process reads these kinds and must not load zod. */
const networking = { group: 'networking.liqo.io', version: 'v1beta1', namespaced: true } as const;
const ipam = { group: 'ipam.liqo.io', version: 'v1alpha1', namespaced: true } as const;

export const networkNames = {
  configurations: { ...networking, kind: 'Configuration', plural: 'configurations' },
  gatewayServers: { ...networking, kind: 'GatewayServer', plural: 'gatewayservers' },
  gatewayClients: { ...networking, kind: 'GatewayClient', plural: 'gatewayclients' },
  wgGatewayServers: {
    ...networking,
    kind: 'WgGatewayServer',
    plural: 'wggatewayservers',
  },
  wgGatewayClients: {
    ...networking,
    kind: 'WgGatewayClient',
    plural: 'wggatewayclients',
  },
  wgGatewayServerTemplates: {
    ...networking,
    kind: 'WgGatewayServerTemplate',
    plural: 'wggatewayservertemplates',
  },
  wgGatewayClientTemplates: {
    ...networking,
    kind: 'WgGatewayClientTemplate',
    plural: 'wggatewayclienttemplates',
  },
  /** The plural is Liqo's. */
  publicKeys: { ...networking, kind: 'PublicKey', plural: 'publickeies' },
  connections: { ...networking, kind: 'Connection', plural: 'connections' },
  internalNodes: {
    ...networking,
    kind: 'InternalNode',
    plural: 'internalnodes',
    namespaced: false,
  },
  internalFabrics: { ...networking, kind: 'InternalFabric', plural: 'internalfabrics' },
  routeConfigurations: {
    ...networking,
    kind: 'RouteConfiguration',
    plural: 'routeconfigurations',
  },
  firewallConfigurations: {
    ...networking,
    kind: 'FirewallConfiguration',
    plural: 'firewallconfigurations',
  },
  networks: { ...ipam, kind: 'Network', plural: 'networks' },
  ips: { ...ipam, kind: 'IP', plural: 'ips' },
} as const;
