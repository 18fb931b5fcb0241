/** What `isthmus status` says of one cluster, out of its objects. Pure. */
import { agentName } from '#cli/install/manifests.ts';
import type { Deployment } from '#shared/domain/core-kinds.ts';
import type { Pod } from '#shared/domain/kube-object.ts';
import { label } from '#shared/domain/liqo-keys.ts';
import { networkAnnotation } from '#shared/domain/network-keys.ts';
import type { BrokerLink } from '#shared/schema/isthmus/broker-link.ts';
import type { Connection } from '#shared/schema/liqo/connection.ts';
import type { ForeignCluster } from '#shared/schema/liqo/foreign-cluster.ts';
import type { NamespaceOffloading } from '#shared/schema/liqo/namespace-offloading.ts';
import type { Network } from '#shared/schema/liqo/network.ts';
import type { Quota } from '#shared/schema/liqo/quota.ts';
import type { VirtualNode } from '#shared/schema/liqo/virtual-node.ts';
import { type PeeringEnds, warningsOf as warningsOfEnds } from './both-ends.ts';

export interface ClusterObjects {
  readonly clusterId: string | undefined;
  readonly kubernetes: string;
  readonly agent: Deployment | undefined;
  readonly broker: BrokerLink | undefined;
  readonly networks: readonly Network[];
  readonly peers: readonly ForeignCluster[];
  readonly connections: readonly Connection[];
  readonly virtualNodes: readonly VirtualNode[];
  readonly quotas: readonly Quota[];
  readonly offloadings: readonly NamespaceOffloading[];
  /** Those that are bound to virtual nodes. */
  readonly pods: readonly Pod[];
}

interface ModuleState {
  readonly module: string;
  readonly condition: string;
  readonly status: string;
  readonly message?: string;
}

export interface PeerStatus {
  readonly id: string;
  /** What the peer is to this cluster. */
  readonly role: string;
  readonly modules: readonly ModuleState[];
  readonly link?: {
    readonly value: string;
    readonly roundTrip?: string;
    readonly lossPercent?: number;
    readonly mtu?: number;
  };
  readonly slices: readonly {
    readonly name: string;
    readonly direction: 'borrowed' | 'lent';
    readonly granted: Readonly<Record<string, string>>;
    /** As the provider counts; known at the provider only. */
    readonly used?: Readonly<Record<string, string>>;
  }[];
  readonly offloadedPods: number;
}

export interface ClusterStatus {
  readonly clusterId: string;
  readonly kubernetes: string;
  readonly agent: { readonly image: string; readonly ready: number; readonly wanted: number };
  readonly broker?: { readonly url: string; readonly connected: boolean; readonly lastExchange?: string };
  readonly labels: string;
  readonly ranges: readonly { readonly name: string; readonly cidr: string }[];
  readonly peers: readonly PeerStatus[];
  /** Both ends, as the broker knows them. Absent: it was not asked, or did not answer. */
  readonly peerings?: readonly PeeringEnds[];
  /** Why the broker was not asked, or did not answer. */
  readonly noPeerings?: string;
  readonly namespaces: readonly { readonly name: string; readonly phase: string; readonly pods: number }[];
  readonly warnings: readonly string[];
}

const good = new Set(['Established', 'Ready', 'None']);
const texts = (resources: Readonly<Record<string, unknown>> | undefined): Record<string, string> =>
  Object.fromEntries(Object.entries(resources ?? {}).map(([name, amount]) => [name, String(amount)]));

/** `only`: the peer that is asked about. Undefined: nothing of ours is installed. */
export function summarize(found: ClusterObjects, only?: string): ClusterStatus | undefined {
  const { clusterId, agent, broker } = found;
  if (clusterId === undefined) return undefined;
  const peers = found.peers
    .filter(({ spec }) => only === undefined || spec.clusterID === only)
    .map((peer) => peerOf(peer, found));
  const [container] = agent?.spec?.template.spec?.containers ?? [];
  const ready = agent?.status?.readyReplicas ?? 0;
  const wanted = agent?.spec?.replicas ?? 0;
  const lastExchange = broker?.status?.lastExchangeTime;
  const labels = container?.env?.find(({ name }) => name === 'ISTHMUS_CLUSTER_LABELS')?.value ?? '';
  return {
    clusterId,
    kubernetes: found.kubernetes,
    agent: { image: container?.image ?? '', ready, wanted },
    ...(broker !== undefined && {
      broker: {
        url: broker.spec.url,
        connected: broker.status?.connected === true,
        ...(lastExchange !== undefined && { lastExchange }),
      },
    }),
    labels,
    ranges: found.networks
      .filter(({ metadata }) => metadata.annotations?.[networkAnnotation.preinstalled] === 'true')
      .map(({ metadata, spec, status }) => ({ name: metadata.name, cidr: status?.cidr ?? spec.cidr })),
    peers,
    namespaces: found.offloadings.map(({ metadata, status }) => ({
      name: metadata.namespace ?? '',
      phase: status?.offloadingPhase ?? 'Pending',
      pods: found.pods.filter((pod) => pod.metadata.namespace === metadata.namespace).length,
    })),
    warnings: [
      ...(agent === undefined ? [`the Deployment ${agentName} of the agent is missing`] : []),
      ...(agent !== undefined && ready < wanted ? [`${ready} of ${wanted} replicas of the agent are ready`] : []),
      ...(broker !== undefined && broker.status?.connected !== true
        ? [`the broker ${broker.spec.url} is away: ${broker.status?.conditions?.[0]?.message ?? 'no exchange yet'}`]
        : []),
      ...peers.flatMap(warningsOf),
      ...found.offloadings
        .filter(({ status }) => /Fail|Error/.test(status?.offloadingPhase ?? ''))
        .map(({ metadata, status }) => `namespace ${metadata.namespace} is ${status?.offloadingPhase}`),
    ],
  };
}

/** With what the broker said. */
export function withEnds(
  status: ClusterStatus,
  said: { readonly ends: readonly PeeringEnds[] } | { readonly none: string },
): ClusterStatus {
  if ('none' in said) return { ...status, noPeerings: said.none };
  const warnings = [...status.warnings, ...warningsOfEnds(said.ends, status.clusterId)];
  return { ...status, peerings: said.ends, warnings };
}

function peerOf({ spec, status }: ForeignCluster, found: ClusterObjects): PeerStatus {
  const id = spec.clusterID;
  const isOf = ({ metadata }: { readonly metadata: { readonly labels?: Readonly<Record<string, string>> } }): boolean =>
    metadata.labels?.[label.remoteClusterId] === id;
  const connection = found.connections.find(isOf)?.status;
  const borrowed = found.virtualNodes.filter((node) => node.spec.clusterID === id);
  const names = new Set(borrowed.map(({ metadata }) => metadata.name));
  return {
    id,
    role: status?.role ?? 'Unknown',
    modules: Object.entries(status?.modules ?? {})
      .filter(([, { enabled }]) => enabled)
      .flatMap(([module, { conditions = [] }]) =>
        conditions.map(({ type, status: state, message }) => ({
          module,
          condition: type,
          status: state,
          ...(message ? { message } : {}),
        })),
      ),
    ...(connection?.value !== undefined && {
      link: {
        value: connection.value,
        ...(connection.latency?.value && { roundTrip: connection.latency.value }),
        ...(connection.packetLoss !== undefined && { lossPercent: connection.packetLoss }),
        ...(connection.mtu !== undefined && { mtu: connection.mtu }),
      },
    }),
    slices: [
      ...borrowed.map(({ metadata, spec: { resourceQuota } }) => ({
        name: metadata.name,
        direction: 'borrowed' as const,
        granted: texts(resourceQuota?.hard),
      })),
      ...found.quotas.filter(isOf).map(({ metadata, spec: { resources }, status: counted }) => ({
        name: metadata.labels?.[label.resourceSliceName] ?? metadata.name,
        direction: 'lent' as const,
        granted: texts(resources),
        ...(counted?.used !== undefined && { used: texts(counted.used) }),
      })),
    ],
    offloadedPods: found.pods.filter((pod) => names.has(pod.spec?.nodeName ?? '')).length,
  };
}

const warningsOf = ({ id, modules, link }: PeerStatus): string[] => [
  ...modules
    .filter(({ status }) => !good.has(status))
    .map(({ condition, status, message }) => `peer ${id}: ${condition} is ${status}${message ? `: ${message}` : ''}`),
  ...(link !== undefined && link.value !== 'Connected' ? [`peer ${id}: the link is ${link.value}`] : []),
  ...(link?.lossPercent !== undefined && link.lossPercent >= 5
    ? [`peer ${id}: ${link.lossPercent} % of the pings are lost`]
    : []),
];
