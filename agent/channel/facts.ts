/** Describes this cluster to the broker: versions, how peers reach it, its size, its policies. */
import type { Cache, Cluster } from '#agent/kube/types.ts';
import { nodes } from '#shared/domain/core-kinds.ts';
import type { Node } from '#shared/domain/kube-object.ts';
import { label, virtualNodeType } from '#shared/domain/liqo-keys.ts';
import { addQuantities } from '#shared/domain/quantity.ts';
import { type PeeringPolicy, peeringPolicies } from '#shared/schema/isthmus/peering-policy.ts';
import { type ClusterFacts, protocolVersion } from '#shared/schema/protocol/agent-protocol.ts';
import { policyFacts } from './policy.ts';

export interface FactsDeps {
  readonly cluster: Cluster;
  readonly agentVersion: string;
  readonly apiServerUrl: string;
  readonly apiServerCa: string;
}

export interface FactsSource {
  read(): ClusterFacts;
  readonly policies: Cache<PeeringPolicy>;
  /** Resolves once the API server has told its version and nodes and policies are known. */
  ready(signal: AbortSignal): Promise<void>;
  subscribe(listener: () => void): void;
}

/** What this agent can do beyond protocol version 1; the broker ignores names it does not know. */
const capabilities: readonly string[] = ['authentication', 'offloading'];

export function createFacts({ cluster, agentVersion, apiServerUrl, apiServerCa }: FactsDeps): FactsSource {
  const nodeCache = cluster.caches.cache(nodes, {
    labelSelector: `${label.type}!=${virtualNodeType}`,
    transform: slimNode,
  });
  const policies = cluster.caches.cache(peeringPolicies);
  let kubernetesVersion = '';

  return {
    policies,
    async ready(signal) {
      kubernetesVersion = (JSON.parse(await cluster.api.getPath('/version', signal)) as { gitVersion: string })
        .gitVersion;
      await Promise.all([nodeCache.synced(signal), policies.synced(signal)]);
    },
    read() {
      const schedulable = nodeCache.list().filter((node) => !node.spec?.unschedulable);
      return {
        agentVersion,
        protocolVersion,
        capabilities: [...capabilities],
        kubernetesVersion,
        apiServerUrl,
        apiServerCa,
        podCidrs: [...new Set(nodeCache.list().flatMap((node) => node.spec?.podCIDRs ?? []))].sort(),
        serviceCidrs: [],
        nodes: nodeCache.list().length,
        allocatable: sumAllocatable(schedulable),
        policies: policies
          .list()
          .map(policyFacts)
          .sort((a, b) => (a.name < b.name ? -1 : 1)),
      };
    },
    subscribe(listener) {
      nodeCache.subscribe(listener);
      policies.subscribe(listener);
    },
  };
}

/** Keeps what the facts are made of; a node's status carries megabytes of image names otherwise. */
function slimNode(node: Node): Node {
  const { metadata, spec, status } = node;
  return {
    apiVersion: node.apiVersion,
    kind: node.kind,
    metadata: {
      name: metadata.name,
      ...(metadata.uid === undefined ? {} : { uid: metadata.uid }),
      ...(metadata.resourceVersion === undefined ? {} : { resourceVersion: metadata.resourceVersion }),
      ...(metadata.labels === undefined ? {} : { labels: metadata.labels }),
    },
    ...(spec === undefined ? {} : { spec }),
    ...(status?.allocatable === undefined ? {} : { status: { allocatable: status.allocatable } }),
  };
}

function sumAllocatable(list: readonly Node[]): Record<string, string> {
  const total: Record<string, string> = {};
  for (const node of list) {
    for (const [resource, amount] of Object.entries(node.status?.allocatable ?? {})) {
      const before = total[resource];
      total[resource] = before === undefined ? amount : addQuantities(before, amount);
    }
  }
  return total;
}
