/** networking.liqo.io InternalNode: one node's end of the overlay. Cluster-scoped, named like the node. */
import * as z from 'zod';
import type { KubeResource } from '#shared/domain/kube-object.ts';
import { Ipv4 } from '../definition/addresses.ts';
import { ageColumn, defineKind } from '../definition/kind.ts';
import { networkNames } from './network-names.ts';

const InternalNodeSpec = z.object({
  interface: z
    .object({
      gateway: z.object({ name: z.string().describe('Interface for this node in every gateway of Liqo.') }),
      node: z.object({ ip: Ipv4.describe('Overlay address of the node, of the internal CIDR.') }),
    })
    .describe('The two ends of the overlay.'),
});
type InternalNodeSpec = z.infer<typeof InternalNodeSpec>;

const InternalNodeStatus = z.object({
  nodeIP: z
    .object({
      local: Ipv4.optional().describe('Source address towards a gateway pod on the same node.'),
      remote: Ipv4.optional().describe('Source address towards a gateway pod on another node.'),
    })
    .optional(),
});
type InternalNodeStatus = z.infer<typeof InternalNodeStatus>;

export type InternalNode = KubeResource<InternalNodeSpec, InternalNodeStatus>;

export const internalNodes = defineKind<InternalNode>({
  ...networkNames.internalNodes,
  shortNames: ['in', 'inode'],
  categories: ['liqo'],
  description: "One node's end of the overlay.",
  writers: { object: 'internal node controller', status: 'node process of that node' },
  columns: [
    { name: 'Node IP Local', type: 'string', jsonPath: '.status.nodeIP.local' },
    { name: 'Node IP Remote', type: 'string', jsonPath: '.status.nodeIP.remote' },
    ageColumn,
  ],
  spec: InternalNodeSpec,
  status: InternalNodeStatus,
});
