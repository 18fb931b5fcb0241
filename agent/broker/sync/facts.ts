/** Describes this cluster to the broker: versions, how peers reach it, its size, its policies. */

import type { Cache, Cluster } from '#kube/model/types.ts';
import { nodes, type Service, services } from '#shared/domain/core-kinds.ts';
import type { Node } from '#shared/domain/kube-object.ts';
import { label, systemNamespace, virtualNodeType } from '#shared/domain/liqo-keys.ts';
import {
  ipType,
  type NetworkType,
  networkLabel,
  networkName,
  networkPort,
  networkType,
} from '#shared/domain/network-keys.ts';
import { isKeptFree } from '#shared/domain/node-taints.ts';
import { ownMember } from '#shared/domain/own-member.ts';
import { addQuantities } from '#shared/domain/quantity.ts';
import { type PeeringPolicy, peeringPolicies } from '#shared/schema/isthmus/peering-policy.ts';
import { type TrustedPeer, trustedPeers } from '#shared/schema/isthmus/trusted-peer.ts';
import { networkKinds } from '#shared/schema/liqo/network-resources.ts';
import {
  type ClusterFacts,
  type NetworkFacts,
  networkCapability,
  protocolVersion,
} from '#shared/schema/protocol/agent-protocol.ts';
import { policyFacts } from './policy-check.ts';

export interface FactsDeps {
  readonly cluster: Cluster;
  readonly agentVersion: string;
  readonly apiServerUrl: string;
  readonly apiServerCa: string;
}

export interface FactsSource {
  read(): ClusterFacts;
  readonly policies: Cache<PeeringPolicy>;
  /** Resolves once the version of the API server, nodes and policies are known. */
  ready(signal: AbortSignal): Promise<void>;
  subscribe(listener: () => void): void;
}

/** What this agent can do beyond protocol version 1; the broker ignores names it does not know. */
const capabilities: readonly string[] = ['authentication', 'offloading'];
const maxNodeAddresses = 16;

export function createFacts({ cluster, agentVersion, apiServerUrl, apiServerCa }: FactsDeps): FactsSource {
  const nodeCache = cluster.caches.cache(nodes, {
    labelSelector: `${label.type}!=${virtualNodeType}`,
    transform: slimNode,
  });
  const policies = cluster.caches.cache(peeringPolicies);
  const peers = cluster.caches.cache(trustedPeers);
  const networks = cluster.caches.cache(networkKinds.networks);
  const ips = cluster.caches.cache(networkKinds.ips, { labelSelector: networkLabel.ipType });
  const balanced = cluster.caches.cache(services, { fieldSelector: 'spec.type=LoadBalancer', transform: slimService });
  // Installed together with everything else that makes links, and before this agent starts.
  const templates = cluster.caches.cache(networkKinds.wgGatewayServerTemplates, { namespace: systemNamespace });
  let kubernetesVersion = '';

  const makesLinks = (): boolean =>
    templates.get({ namespace: systemNamespace, name: networkName.serverTemplate }) !== undefined;
  const granted = (type: NetworkType): string[] =>
    networks
      .list()
      .filter(({ metadata, status }) => metadata.labels?.[networkLabel.networkType] === type && status?.cidr)
      .map(({ status }) => status?.cidr ?? '')
      .sort();

  function networkFacts(): NetworkFacts {
    const proxy = ips.list().find(({ metadata }) => metadata.labels?.[networkLabel.ipType] === ipType.apiServerProxy);
    const at = proxy?.status?.ip;
    return {
      podCidrs: granted(networkType.pod),
      externalCidrs: granted(networkType.external),
      nodeAddresses: nodeAddresses(nodeCache.list()),
      ...(givesAddresses(balanced.list()) ? { loadBalancer: true } : {}),
      ...(at === undefined ? {} : { apiServerProxy: `${at}:${networkPort.apiServerProxy}` }),
    };
  }

  return {
    policies,
    async ready(signal) {
      kubernetesVersion = (JSON.parse(await cluster.api.getPath('/version', signal)) as { gitVersion: string })
        .gitVersion;
      // Not the Services: an old API server may refuse that selector, and then it is only not known whether load balancers work.
      await Promise.all([nodeCache, policies, peers, networks, ips, templates].map((cache) => cache.synced(signal)));
    },
    read() {
      const schedulable = nodeCache.list().filter((node) => !isKeptFree(node));
      return {
        agentVersion,
        protocolVersion,
        capabilities: makesLinks() ? [...capabilities, networkCapability] : [...capabilities],
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
        ...(makesLinks() ? { network: networkFacts() } : {}),
        ...consentFacts(peers.list()),
      };
    },
    subscribe(listener) {
      nodeCache.subscribe(listener);
      for (const cache of [policies, peers, networks, ips, balanced, templates]) cache.subscribe(listener);
    },
  };
}

function consentFacts(peers: readonly TrustedPeer[]): Pick<ClusterFacts, 'consents'> {
  const consents = peers
    .filter(({ spec }) => (spec?.consent?.length ?? 0) > 0)
    .map(({ metadata, spec }) => ({ peer: metadata.name, roles: [...(spec.consent ?? [])].sort() }))
    .sort((a, b) => (a.peer < b.peer ? -1 : 1));
  return consents.length === 0 ? {} : { consents };
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
    status: {
      ...(status?.allocatable === undefined ? {} : { allocatable: status.allocatable }),
      ...(status?.addresses === undefined ? {} : { addresses: status.addresses }),
    },
  };
}

const slimService = ({ apiVersion, kind, metadata, status }: Service): Service => {
  const { name, namespace, uid, resourceVersion } = metadata;
  const kept = {
    name,
    ...(namespace && { namespace }),
    ...(uid && { uid }),
    ...(resourceVersion && { resourceVersion }),
  };
  return {
    apiVersion,
    kind,
    metadata: kept,
    ...(status?.loadBalancer ? { status: { loadBalancer: status.loadBalancer } } : {}),
  };
};

/** That a load balancer works is only known where one has given an address to some Service. */
const givesAddresses = (list: readonly Service[]): boolean =>
  list.some(({ status }) => status?.loadBalancer?.ingress?.some(({ ip, hostname }) => ip || hostname));

/** Those that the world may reach first. */
function nodeAddresses(list: readonly Node[]): string[] {
  const of = (wanted: string) =>
    list
      .flatMap(({ status }) => status?.addresses ?? [])
      .flatMap(({ type, address }) => (type === wanted ? [address] : []));
  return [...new Set([...of('ExternalIP').sort(), ...of('InternalIP').sort()])].slice(0, maxNodeAddresses);
}

function sumAllocatable(list: readonly Node[]): Record<string, string> {
  const total: Record<string, string> = {};
  for (const node of list) {
    for (const [resource, amount] of Object.entries(node.status?.allocatable ?? {})) {
      const before = ownMember(total, resource);
      total[resource] = before === undefined ? amount : addQuantities(before, amount);
    }
  }
  return total;
}
