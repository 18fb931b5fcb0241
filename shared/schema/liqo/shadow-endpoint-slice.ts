/** offloading.liqo.io ShadowEndpointSlice: endpoints of a consumer's service, to be translated into an EndpointSlice by the provider. */
import type { DiscoveryV1EndpointPort, V1Endpoint } from '@kubernetes/client-node';
import * as z from 'zod';
import type { KubeResource, Wire } from '#shared/domain/kube-object.ts';
import { describing, ObjectReference, StringMap } from '../definition/fields.ts';
import { ageColumn, defineKind } from '../definition/kind.ts';

const Endpoint = describing<Wire<V1Endpoint>>(
  z.object({
    addresses: z.array(z.string()),
    conditions: z
      .object({
        ready: z.boolean().optional(),
        serving: z.boolean().optional(),
        terminating: z.boolean().optional(),
      })
      .optional(),
    deprecatedTopology: StringMap.optional(),
    hints: z
      .object({
        forZones: z.array(z.object({ name: z.string() })).optional(),
        forNodes: z.array(z.object({ name: z.string() })).optional(),
      })
      .optional(),
    hostname: z.string().optional(),
    nodeName: z.string().optional(),
    targetRef: ObjectReference.optional(),
    zone: z.string().optional(),
  }),
);
const EndpointPort = describing<Wire<DiscoveryV1EndpointPort>>(
  z.object({
    name: z.string().optional(),
    port: z.int32().optional(),
    protocol: z.string().optional(),
    appProtocol: z.string().optional(),
  }),
);

const ShadowEndpointSliceSpec = z.object({
  template: z
    .object({
      endpoints: z.array(Endpoint).optional(),
      ports: z.array(EndpointPort).optional(),
      addressType: z.enum(['IPv4', 'IPv6', 'FQDN']).optional(),
    })
    .optional()
    .describe('The EndpointSlice as the consumer has it.'),
});
type ShadowEndpointSliceSpec = z.infer<typeof ShadowEndpointSliceSpec>;

export type ShadowEndpointSlice = KubeResource<ShadowEndpointSliceSpec>;

export const shadowEndpointSlices = defineKind<ShadowEndpointSlice>({
  group: 'offloading.liqo.io',
  version: 'v1beta1',
  kind: 'ShadowEndpointSlice',
  plural: 'shadowendpointslices',
  namespaced: true,
  shortNames: ['shes', 'sheps', 'seps'],
  categories: ['liqo'],
  description: "Endpoints of a consumer's service, translated into an EndpointSlice by the provider.",
  writers: { object: 'virtual kubelet of the consumer' },
  columns: [ageColumn],
  spec: ShadowEndpointSliceSpec,
  specPresence: 'defaulted',
});
