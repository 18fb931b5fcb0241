/** What WgGatewayServer and WgGatewayClient have in common: the objects to create, as a template rendered them. */
import type { V1DeploymentSpec, V1ServiceSpec } from '@kubernetes/client-node';
import * as z from 'zod';
import type { ObjectMeta, Wire } from '#shared/domain/kube-object.ts';
import { opaque } from '../definition/fields.ts';
import { cel } from '../definition/kind.ts';

const Metadata = opaque<Partial<ObjectMeta>>().optional();

export const ServiceTemplate = z.object({ metadata: Metadata, spec: opaque<Wire<V1ServiceSpec>>().optional() });
export type ServiceTemplate = z.infer<typeof ServiceTemplate>;
export const GatewayDeployment = z.object({ metadata: Metadata, spec: opaque<Wire<V1DeploymentSpec>>().optional() });
export type GatewayDeployment = z.infer<typeof GatewayDeployment>;

const noMetrics =
  'metrics.enabled is true, which is not served: the agent tells of links on its own port; accepted is false (invalid_input)';
export const GatewayMetrics = z
  .object({
    enabled: z.boolean(),
    service: ServiceTemplate.optional(),
    serviceMonitor: z.object({ metadata: Metadata, spec: opaque<object>().optional() }).optional(),
  })
  .refine(({ enabled }) => !enabled, noMetrics)
  .meta(cel({ rule: '!self.enabled', message: noMetrics }));
export type GatewayMetrics = z.infer<typeof GatewayMetrics>;

export const GatewayTemplateSpec = z.object({
  objectKind: z.object({ apiVersion: z.string().min(1), kind: z.string().min(1) }).describe('What to instantiate.'),
  template: opaque<{ metadata?: Record<string, unknown>; spec?: Record<string, unknown> }>().describe(
    'Metadata and spec of it; text is rendered with .Spec, .Name, .Namespace, .GatewayUID, .ClusterID and .SecretName.',
  ),
});
export type GatewayTemplateSpec = z.infer<typeof GatewayTemplateSpec>;
