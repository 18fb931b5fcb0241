/** ClusterRoles that the agent binds to itself in single namespaces, when it gets to work there. Their rules are with the installation. */

export const agentAccount = 'isthmus-agent';

export const agentRole = {
  /** In the tenant namespace of each peer: gateways, and Leases of their pods. */
  tenant: 'isthmus-agent-tenant',
  /** In namespaces that a NamespaceMap made for a consumer: its pods. */
  guest: 'isthmus-agent-guest',
  /** In namespaces that are offloaded: what is reflected, and tokens of pods. */
  offloaded: 'isthmus-agent-offloaded',
} as const;
export type AgentRole = (typeof agentRole)[keyof typeof agentRole];
