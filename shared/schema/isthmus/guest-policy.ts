/** What pods and objects of consumers may do at this provider: `spec.asProvider.guests` of a PeeringPolicy (docs/guests.md). */
import * as z from 'zod';
import { LimitsEnforcement, ResourceList } from '../definition/fields.ts';

const volumeTypes = [
  ...['configMap', 'downwardAPI', 'emptyDir', 'ephemeral', 'persistentVolumeClaim', 'projected', 'secret'],
  ...['awsElasticBlockStore', 'azureDisk', 'azureFile', 'cephfs', 'cinder', 'csi', 'fc', 'flexVolume', 'flocker'],
  ...['gcePersistentDisk', 'gitRepo', 'glusterfs', 'hostPath', 'image', 'iscsi', 'nfs', 'photonPersistentDisk'],
  ...['portworxVolume', 'quobyte', 'rbd', 'scaleIO', 'storageos', 'vsphereVolume'],
] as const;

const list = z.array(z.string().min(1).max(253)).max(256).optional();

export const GuestPolicy = z.object({
  podSecurity: z
    .enum(['baseline', 'restricted', 'privileged'])
    .optional()
    .describe('Pod Security Standard that their pods are held to; default baseline. Unsafe: privileged.'),
  volumes: z
    .array(z.enum(volumeTypes))
    .optional()
    .describe('Types of volumes; default those of the restricted standard without csi. Unsafe: all others.'),
  tolerations: list.describe(
    'Keys of taints that pods may tolerate besides not-ready and unreachable nodes; `*` ends a prefix. Others are left out of the pod.',
  ),
  nodeLabels: list.describe(
    'Keys of node labels by which pods may choose nodes; default architecture, system, zone, region and instance type; `*` ends a prefix.',
  ),
  schedulers: list.describe('Schedulers besides default-scheduler; `*` ends a prefix.'),
  runtimeClasses: list.describe('Runtime classes that pods may name; default none; `*` ends a prefix.'),
  priorityClasses: list.describe('Priority classes that pods may name; default none; `*` ends a prefix.'),
  maxGracePeriodSeconds: z
    .int()
    .min(1)
    .max(31_536_000)
    .optional()
    .describe('Longest that a pod has to end after it was deleted, default 600; longer ones are cut to it.'),
  limitsEnforcement: LimitsEnforcement.optional().describe(
    'Of the Quotas of these consumers, default Soft. Unsafe: None, as in Liqo, where pods that request nothing count for nothing.',
  ),
  defaultRequests: ResourceList.optional().describe(
    'Requests of containers that have none, under Soft and Hard; default cpu 25m and memory 64Mi. Empty: such pods are refused.',
  ),
  defaultLimits: ResourceList.optional().describe(
    'Limits of containers that have none, under Soft; default none. Never below the request.',
  ),
});
export type GuestPolicy = z.infer<typeof GuestPolicy>;
