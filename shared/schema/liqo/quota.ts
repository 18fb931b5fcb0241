/** offloading.liqo.io Quota: what one consumer identity may use on this provider. One for each accepted slice. */
import * as z from 'zod';
import type { KubeResource } from '#shared/domain/kube-object.ts';
import { LimitsEnforcement, ResourceList } from '../definition/fields.ts';
import { ageColumn, defineKind } from '../definition/kind.ts';

const QuotaSpec = z.object({
  user: z.string().min(1).describe('User (or its sanitised name) that this quota limits.'),
  limitsEnforcement: LimitsEnforcement.optional().describe(
    'Soft: each container must request cpu and memory. Hard: and limits must equal requests.',
  ),
  resources: ResourceList,
  cordoned: z.boolean().optional().describe('True: nothing new is admitted.'),
});
type QuotaSpec = z.infer<typeof QuotaSpec>;

export const QuotaStatus = z.object({
  used: ResourceList.optional().describe(
    'Taken by ShadowPods of this user that have not finished, and by pods that outlive theirs.',
  ),
  free: ResourceList.optional().describe('What is left of `spec.resources`.'),
});
export type QuotaStatus = z.infer<typeof QuotaStatus>;

export type Quota = KubeResource<QuotaSpec, QuotaStatus>;

export const quotas = defineKind<Quota>({
  group: 'offloading.liqo.io',
  version: 'v1beta1',
  kind: 'Quota',
  plural: 'quotas',
  namespaced: true,
  shortNames: ['qt'],
  categories: ['liqo'],
  description: 'What one consumer identity may use on this provider.',
  writers: { object: 'quota creator (provider)', status: 'quota controller (provider)' },
  columns: [
    { name: 'Enforcement', type: 'string', jsonPath: '.spec.limitsEnforcement' },
    { name: 'Cordoned', type: 'boolean', jsonPath: '.spec.cordoned' },
    ageColumn,
    { name: 'User', type: 'string', jsonPath: '.spec.user', priority: 1 },
  ],
  spec: QuotaSpec,
  status: QuotaStatus,
});
