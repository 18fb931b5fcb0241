/** isthmus.dev Peering: a peering asked for from inside the consumer cluster. */
import * as z from 'zod';
import type { KubeResource } from '#shared/domain/kube-object.ts';
import { Mtu } from '../definition/addresses.ts';
import { ClusterId, Conditions, ResourceList } from '../definition/fields.ts';
import { ageColumn, defineKind, immutable } from '../definition/kind.ts';
import { PeeringOwner } from '../protocol/agent-protocol.ts';

const PeeringSpec = z.object({
  provider: ClusterId.meta(immutable('provider')).describe('Cluster that is asked for capacity.'),
  resources: ResourceList.default({}).describe('What is asked for; empty: as much as the provider gives by default.'),
  class: z.string().min(1).default('default').describe('Resource class at the provider.'),
  network: z
    .object({
      enabled: z.boolean().optional().describe('Whether the clusters are linked; absent: when both agents can.'),
      gatewayLocation: z.enum(['consumer', 'provider']).optional().describe('Side that is dialled; absent: provider.'),
      mtu: Mtu.optional().describe('Of the tunnel, at most; absent: 1340.'),
      serviceType: z
        .enum(['LoadBalancer', 'NodePort', 'ClusterIP'])
        .optional()
        .describe('How the dialled gateway is exposed; absent: by what is known to work there.'),
      inBand: z.boolean().optional().describe("Whether the provider's API server is reached through the link."),
    })
    .optional()
    .describe('Link between the two clusters. What is left out stays as it is at the broker.'),
  owner: PeeringOwner.optional().describe(
    "Whose terms hold where this object and the broker's API differ. Object (the default): this object's; the API may end the peering and change nothing else of it, and deleting the object ends it. Broker: the API's; this object asks once, then shows, and deleting it ends nothing.",
  ),
});
type PeeringSpec = z.infer<typeof PeeringSpec>;

const PeeringStatus = z.object({
  observedGeneration: z.int().optional(),
  peering: z.string().optional().describe('Identifier of this peering at the broker.'),
  phase: z.string().optional().describe('As the broker sees it.'),
  owner: PeeringOwner.optional().describe('Whose terms hold now; absent: there is no peering.'),
  conditions: Conditions.optional(),
});
type PeeringStatus = z.infer<typeof PeeringStatus>;

export type Peering = KubeResource<PeeringSpec, PeeringStatus>;

export const peerings = defineKind<Peering>({
  group: 'isthmus.dev',
  version: 'v1alpha1',
  kind: 'Peering',
  plural: 'peerings',
  namespaced: false,
  shortNames: ['peer'],
  categories: ['isthmus'],
  description: 'A peering asked for from inside the consumer cluster; status mirrors the broker.',
  writers: { object: 'a user or a GitOps tool', status: 'channel of the agent' },
  columns: [
    { name: 'Provider', type: 'string', jsonPath: '.spec.provider' },
    { name: 'Phase', type: 'string', jsonPath: '.status.phase' },
    { name: 'Ready', type: 'string', jsonPath: '.status.conditions[?(@.type=="Ready")].status' },
    { name: 'Owner', type: 'string', jsonPath: '.status.owner' },
    { name: 'Peering', type: 'string', jsonPath: '.status.peering', priority: 1 },
    ageColumn,
  ],
  spec: PeeringSpec,
  status: PeeringStatus,
});
