/** Every custom kind that Isthmus installs, in the order of the reference page. */
import { brokerLinks } from './isthmus/broker-link.ts';
import { peerings } from './isthmus/peering.ts';
import { peeringPolicies } from './isthmus/peering-policy.ts';
import type { KindDefinition } from './kind.ts';
import { foreignClusters } from './liqo/foreign-cluster.ts';
import { identities } from './liqo/identity.ts';
import { namespaceMaps } from './liqo/namespace-map.ts';
import { namespaceOffloadings } from './liqo/namespace-offloading.ts';
import { quotas } from './liqo/quota.ts';
import { renews } from './liqo/renew.ts';
import { resourceSlices } from './liqo/resource-slice.ts';
import { shadowEndpointSlices } from './liqo/shadow-endpoint-slice.ts';
import { shadowPods } from './liqo/shadow-pod.ts';
import { tenants } from './liqo/tenant.ts';
import { virtualNodes } from './liqo/virtual-node.ts';
import { vkOptionsTemplates } from './liqo/vk-options-template.ts';

export const allKinds: readonly KindDefinition[] = [
  brokerLinks,
  peerings,
  peeringPolicies,
  foreignClusters,
  tenants,
  identities,
  resourceSlices,
  renews,
  virtualNodes,
  namespaceOffloadings,
  namespaceMaps,
  quotas,
  shadowPods,
  shadowEndpointSlices,
  vkOptionsTemplates,
];
