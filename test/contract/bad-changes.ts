/** Changes that the API server must refuse, and what the refusal must name. */
import type { KindDefinition } from '#shared/schema/definition/kind.ts';
import { brokerLinks } from '#shared/schema/isthmus/broker-link.ts';
import { peerings } from '#shared/schema/isthmus/peering.ts';
import { foreignClusters } from '#shared/schema/liqo/foreign-cluster.ts';
import { ips } from '#shared/schema/liqo/ip.ts';
import { namespaceMaps } from '#shared/schema/liqo/namespace-map.ts';
import { namespaceOffloadings } from '#shared/schema/liqo/namespace-offloading.ts';
import { networks } from '#shared/schema/liqo/network.ts';
import { resourceSlices } from '#shared/schema/liqo/resource-slice.ts';
import { shadowPods } from '#shared/schema/liqo/shadow-pod.ts';
import { tenants } from '#shared/schema/liqo/tenant.ts';
import { virtualNodes } from '#shared/schema/liqo/virtual-node.ts';
import type { Metadata } from './bad-objects.ts';

export interface BadChange {
  readonly why: string;
  readonly kind: KindDefinition;
  readonly metadata: Metadata;
  readonly from: unknown;
  readonly to?: unknown;
  /** Instead of `to`: written to the status subresource. */
  readonly toStatus?: unknown;
  readonly says: readonly string[];
}

const here = (name: string): Metadata => ({ name, namespace: 'default' });
const offloading: Metadata = { name: 'offloading', namespace: 'changes' };
const selected = { namespaceMappingStrategy: 'SelectedName', remoteNamespaceName: 'a' };
const time = '2026-11-21T08:00:00Z';

export const badChanges: readonly BadChange[] = [
  {
    why: 'another cluster ID of a foreign cluster',
    kind: foreignClusters,
    metadata: { name: 'change' },
    from: { clusterID: 'milan' },
    to: { clusterID: 'turin' },
    says: ['spec.clusterID', 'clusterID is immutable'],
  },
  {
    why: 'another cluster ID of a tenant',
    kind: tenants,
    metadata: here('change'),
    from: { clusterID: 'rome' },
    to: { clusterID: 'turin' },
    says: ['spec.clusterID', 'clusterID is immutable'],
  },
  {
    why: 'another cluster ID of an enrolled cluster',
    kind: brokerLinks,
    metadata: { name: 'change' },
    from: { url: 'https://x', tenant: 't', clusterId: 'rome' },
    to: { url: 'https://x', tenant: 't', clusterId: 'turin' },
    says: ['spec.clusterId', 'immutable'],
  },
  {
    why: 'another provider of a peering',
    kind: peerings,
    metadata: { name: 'change' },
    from: { provider: 'milan' },
    to: { provider: 'turin' },
    says: ['spec.provider', 'immutable'],
  },
  {
    why: 'another mapping strategy',
    kind: namespaceOffloadings,
    metadata: offloading,
    from: {},
    to: { namespaceMappingStrategy: 'EnforceSameName' },
    says: ['spec.namespaceMappingStrategy', 'immutable'],
  },
  {
    why: 'another remote name',
    kind: namespaceOffloadings,
    metadata: offloading,
    from: selected,
    to: { ...selected, remoteNamespaceName: 'b' },
    says: ['spec.remoteNamespaceName', 'immutable'],
  },
  {
    why: 'a remote name added later',
    kind: namespaceOffloadings,
    metadata: offloading,
    from: {},
    to: { remoteNamespaceName: 'b' },
    says: ['spec.remoteNamespaceName', 'immutable'],
  },
  {
    why: 'a condition of an unknown type',
    kind: resourceSlices,
    metadata: here('change'),
    from: {},
    toStatus: { conditions: [{ type: 'Ready', status: 'Accepted' }] },
    says: ['status.conditions[0].type', '"Authentication"'],
  },
  {
    why: 'a condition with the status of another kind',
    kind: virtualNodes,
    metadata: here('change'),
    from: { clusterID: 'milan' },
    toStatus: { conditions: [{ type: 'Node', status: 'True' }] },
    says: ['status.conditions[0].status', '"Running"'],
  },
  {
    why: 'a list of times in place of one',
    kind: virtualNodes,
    metadata: here('change'),
    from: { clusterID: 'milan' },
    toStatus: { conditions: [{ type: 'Node', status: 'None', lastTransitionTime: ['2026-01-31T12:00:00Z'] }] },
    says: ['status.conditions[0].lastTransitionTime', 'must be of type string'],
  },
  {
    why: 'a time that is none',
    kind: virtualNodes,
    metadata: here('change'),
    from: { clusterID: 'milan' },
    toStatus: { conditions: [{ type: 'Node', status: 'None', lastTransitionTime: 'noon' }] },
    says: ['status.conditions[0].lastTransitionTime', 'noon'],
  },
  {
    why: 'a foreign cluster status without modules',
    kind: foreignClusters,
    metadata: { name: 'change' },
    from: { clusterID: 'milan' },
    toStatus: { role: 'Provider' },
    says: ['status.modules', 'Required'],
  },
  {
    why: 'two conditions of one type',
    kind: peerings,
    metadata: { name: 'change' },
    from: { provider: 'milan' },
    toStatus: {
      conditions: ['True', 'False'].map((status) => ({
        type: 'Ready',
        status,
        reason: 'x',
        message: '',
        lastTransitionTime: time,
      })),
    },
    says: ['status.conditions[1]', 'Duplicate value'],
  },
  {
    why: 'a pod phase that does not exist',
    kind: shadowPods,
    metadata: here('change'),
    from: { pod: { containers: [{ name: 'web', image: 'x' }] } },
    toStatus: { phase: 'Sleeping' },
    says: ['status.phase', '"Succeeded"'],
  },
  {
    why: 'a mapping phase that does not exist',
    kind: namespaceMaps,
    metadata: here('change'),
    from: {},
    toStatus: { currentMapping: { shop: { phase: 'Fine' } } },
    says: ['status.currentMapping.shop.phase', '"CreationLoopBackOff"'],
  },
  {
    why: 'another range of a network',
    kind: networks,
    metadata: here('change'),
    from: { cidr: '10.70.0.0/16' },
    to: { cidr: '10.71.0.0/16' },
    says: ['spec.cidr', 'cidr is immutable'],
  },
  {
    why: 'another number of addresses that a network sets aside',
    kind: networks,
    metadata: here('change'),
    from: { cidr: '10.70.0.0/16', preAllocated: 1 },
    to: { cidr: '10.70.0.0/16', preAllocated: 2 },
    says: ['spec.preAllocated', 'preAllocated is immutable'],
  },
  {
    why: 'addresses set aside by a network that had none',
    kind: networks,
    metadata: here('change'),
    from: { cidr: '10.70.0.0/16' },
    to: { cidr: '10.70.0.0/16', preAllocated: 2 },
    says: ['preAllocated is immutable'],
  },
  {
    why: 'another exposed address',
    kind: ips,
    metadata: here('change'),
    from: { ip: '192.0.2.1' },
    to: { ip: '192.0.2.2' },
    says: ['spec.ip', 'ip is immutable'],
  },
];
