/** isthmus.dev RetainedVolume: data of a consumer that this provider still has after the claim for it ended. */
import * as z from 'zod';
import type { KubeResource } from '#shared/domain/kube-object.ts';
import { ageColumn, defineKind } from '../definition/kind.ts';

const ClaimRef = z.object({
  namespace: z.string().min(1),
  name: z.string().min(1),
  uid: z.string().min(1).describe('Of the claim that had the volume; another one of that name is another claim.'),
});

const RetainedVolumeSpec = z.object({
  consumer: z.string().min(1).describe('Cluster ID of the consumer whose data it is.'),
  claim: ClaimRef.optional().describe('The claim in the consumer; absent: the claim here did not name it.'),
  remoteClaim: ClaimRef.describe('The claim here that the volume was bound to.'),
  size: z.string().min(1).describe('Capacity of the volume.'),
  storageClassName: z.string().optional().describe('Of this cluster.'),
  volumeMode: z.enum(['Filesystem', 'Block']).default('Filesystem').describe('Of the volume.'),
  accessModes: z.array(z.string()).default([]).describe('Of the volume.'),
  keptSince: z.iso.datetime().describe('When its claim ended.'),
  expiresAt: z.iso
    .datetime()
    .describe('Until then the provider promises to keep it. Afterwards it is shown as expired and kept all the same.'),
  discard: z
    .boolean()
    .optional()
    .describe('True: delete the data, for good. `isthmus volume discard` sets it; nothing else deletes kept data.'),
  adopt: z
    .object({ namespace: z.string().min(1), claim: z.string().min(1) })
    .optional()
    .describe('Keep the volume for the claim of this name, which gets it as soon as it exists.'),
});
type RetainedVolumeSpec = z.infer<typeof RetainedVolumeSpec>;

const RetainedVolumeStatus = z.object({
  phase: z
    .enum(['Kept', 'Expired', 'Adopting', 'Discarding', 'Lost'])
    .describe('Lost: the PersistentVolume was deleted past Isthmus.'),
  message: z.string().optional(),
});
export type RetainedVolumeStatus = z.infer<typeof RetainedVolumeStatus>;

export type RetainedVolume = KubeResource<RetainedVolumeSpec, RetainedVolumeStatus>;

export const retainedVolumes = defineKind<RetainedVolume>({
  group: 'isthmus.dev',
  version: 'v1alpha1',
  kind: 'RetainedVolume',
  plural: 'retainedvolumes',
  namespaced: false,
  shortNames: ['rv'],
  categories: ['isthmus'],
  description:
    'Data of a consumer that this provider keeps. It has the name of its PersistentVolume; without `discard` it comes back when it is deleted.',
  writers: {
    object: 'retention controller (provider); `isthmus volume` sets discard and adopt',
    status: 'retention controller (provider)',
  },
  columns: [
    { name: 'Consumer', type: 'string', jsonPath: '.spec.consumer' },
    { name: 'Claim', type: 'string', jsonPath: '.spec.claim.name' },
    { name: 'Size', type: 'string', jsonPath: '.spec.size' },
    { name: 'Phase', type: 'string', jsonPath: '.status.phase' },
    { name: 'Expires', type: 'string', jsonPath: '.spec.expiresAt' },
    ageColumn,
  ],
  spec: RetainedVolumeSpec,
  status: RetainedVolumeStatus,
});
