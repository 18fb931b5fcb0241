/** networking.liqo.io InternalFabric: one gateway's end of the overlay, and what lies behind it. Tenant namespace. */
import * as z from 'zod';
import type { KubeResource } from '#shared/domain/kube-object.ts';
import { Cidr, Ipv4 } from '../definition/addresses.ts';
import { ageColumn, defineKind } from '../definition/kind.ts';
import { networkNames } from './network-names.ts';

const InternalFabricSpec = z.object({
  mtu: z.int().optional().describe('In effect on tunnel and overlay, in bytes.'),
  remoteCIDRs: z.array(Cidr).optional().describe("The peer's pod and external ranges as this cluster sees them."),
  interface: z
    .object({
      node: z.object({ name: z.string().describe('Interface for this gateway on every node of Liqo.') }),
      gateway: z.object({ ip: Ipv4.describe('Overlay address of the gateway, of the internal CIDR.') }),
    })
    .describe('The two ends of the overlay.'),
  gatewayIP: Ipv4.describe('Of the active gateway pod.'),
});
type InternalFabricSpec = z.infer<typeof InternalFabricSpec>;

export type InternalFabric = KubeResource<InternalFabricSpec>;

export const internalFabrics = defineKind<InternalFabric>({
  ...networkNames.internalFabrics,
  shortNames: ['if', 'ifabric'],
  categories: ['liqo'],
  description: "One gateway's end of the overlay, and what lies behind it.",
  writers: { object: 'internal fabric controller' },
  columns: [{ name: 'Gateway IP', type: 'string', jsonPath: '.spec.gatewayIP' }, ageColumn],
  spec: InternalFabricSpec,
});
