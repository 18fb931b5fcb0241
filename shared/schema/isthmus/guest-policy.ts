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

/** Of IPv4 or IPv6. */
const range =
  /^((25[0-5]|2[0-4]\d|1?\d?\d)(\.(25[0-5]|2[0-4]\d|1?\d?\d)){3}\/(3[0-2]|[12]?\d)|[0-9a-f:]*:[0-9a-f:]*\/\d{1,3})$/;

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
  serviceAccounts: list.describe(
    'Names of accounts of this cluster, in their namespaces, that pods may run as besides `default`; default none; `*` ends a prefix.',
  ),
  tokenAudiences: list.describe(
    'Audiences besides the API server of this cluster for which pods may get tokens of their account; default none; `*` ends a prefix.',
  ),
  nodeAnnotations: list.describe(
    'Keys of annotations that network plugins and container runtimes obey and that pods may have; default none, others are left out of the pod; `*` ends a prefix.',
  ),
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
    'Requests of containers that have none, under Soft and Hard; default cpu 25m and memory 64Mi. Empty: such pods are refused. For a consumer that runs Liqo they only count where they would change the QoS class.',
  ),
  defaultLimits: ResourceList.optional().describe(
    'Limits of containers that have none, under Soft; default none. Never below the request. Pods of a consumer that runs Liqo whose QoS class they would change are refused.',
  ),
  namespaces: list.describe(
    'Names of their namespaces here, besides those that end with the ID of the consumer; default only that of the network test of liqoctl. `*` begins or ends a pattern; alone it is every name but reserved ones, which need a longer pattern.',
  ),
  maxNamespaces: z.int().min(1).max(100_000).optional().describe('Most namespaces of one consumer here, default 100.'),
  networkIsolation: z
    .boolean()
    .optional()
    .describe(
      'Whether a NetworkPolicy keeps their namespaces apart from other guests, from pods of this cluster and from closedRanges; default true. namespaceDefaults.networkPolicy takes its place. Unsafe: false.',
    ),
  closedRanges: z
    .array(z.string().regex(range))
    .max(256)
    .optional()
    .describe(
      'Ranges outside of this cluster that guests do not reach; default link-local (metadata services) and private ones. The way to their consumer is always open; `0.0.0.0/0` closes all others.',
    ),
  networkPeers: list.describe(
    'IDs of other peers with whose pods guests may talk directly; default none: only through their consumer.',
  ),
  ingressHosts: list.describe(
    'Hosts that their Ingresses may claim; default none, so no Ingress. `*.` begins a domain; `*` accepts all, and those without a host.',
  ),
  annotations: list.describe(
    'Keys of annotations on their Services, Ingresses and claims; default those that no controller obeys, and harmless ones. Keys without `/` are always accepted; `*` ends a prefix.',
  ),
  loadBalancerAddresses: z
    .boolean()
    .optional()
    .describe('Whether their Services may ask for an address by loadBalancerIP; default false.'),
  loadBalancerClasses: list.describe('Values of loadBalancerClass on their Services; default none; `*` ends a prefix.'),
  externalNames: list.describe(
    'Names to which their Services of type ExternalName may lead; default none, so no such Service. `*.` begins a domain. Unsafe: `*`.',
  ),
});
export type GuestPolicy = z.infer<typeof GuestPolicy>;
