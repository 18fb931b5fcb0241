/** offloading.liqo.io ShadowPod: a consumer's wish for a pod on this provider. The only thing a consumer creates that becomes a pod. */
import * as z from 'zod';
import type { KubeResource, PodSpec } from '#shared/domain/kube-object.ts';
import { ageColumn, defineKind } from '../definition/kind.ts';

export const ShadowPodPhase = z.enum(['Pending', 'Running', 'Succeeded', 'Failed', 'Unknown']);
export type ShadowPodPhase = z.infer<typeof ShadowPodPhase>;

/** The API server checks that there are named containers; the rest is checked when the pod is created. */
const PodSpecSchema = z
  .looseObject({
    containers: z
      .array(z.looseObject({ name: z.string().min(1) }).meta({ 'x-kubernetes-preserve-unknown-fields': true }))
      .min(1),
  })
  .meta({ 'x-kubernetes-preserve-unknown-fields': true });

const ShadowPodSpec = z.object({
  pod: (PodSpecSchema as unknown as z.ZodType<PodSpec>).describe('Spec of the pod to run (core/v1 PodSpec).'),
});
type ShadowPodSpec = z.infer<typeof ShadowPodSpec>;

const ShadowPodStatus = z.object({
  phase: ShadowPodPhase.default('Unknown').describe('Phase of the pod.'),
  reason: z.string().optional().describe('Why there is no pod (yet), in one word; absent when there is one.'),
  message: z.string().optional().describe('The same for people; the consumer shows it on its own pod.'),
});
type ShadowPodStatus = z.infer<typeof ShadowPodStatus>;

export type ShadowPod = KubeResource<ShadowPodSpec, ShadowPodStatus>;

export const shadowPods = defineKind<ShadowPod>({
  group: 'offloading.liqo.io',
  version: 'v1beta1',
  kind: 'ShadowPod',
  plural: 'shadowpods',
  namespaced: true,
  shortNames: ['shp', 'shpod'],
  categories: ['liqo'],
  description: "A consumer's wish for a pod on this provider.",
  writers: { object: 'virtual kubelet of the consumer', status: 'shadow pod controller (provider)' },
  columns: [{ name: 'Status', type: 'string', jsonPath: '.status.phase' }, ageColumn],
  spec: ShadowPodSpec,
  status: ShadowPodStatus,
});
