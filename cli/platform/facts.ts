/** What can be read of a cluster with an administrator's rights and without starting anything in it, reduced to what tells its distribution, CNI and ways in. */
import { type KubeClient, smallObjects } from '#cli/cluster/open.ts';
import { configMaps, daemonSets, endpointSlices, nodes, type Service, services } from '#shared/domain/core-kinds.ts';
import type { Node } from '#shared/domain/kube-object.ts';
import { isVirtualNode } from '#shared/domain/virtual-nodes.ts';

export interface NodeFacts {
  readonly name: string;
  readonly labels: Readonly<Record<string, string>>;
  /** `aws:///eu-west-1a/i-0…`, `kind://docker/…`; empty where no cloud says it. */
  readonly providerId: string;
  /** `linux` or `windows`. */
  readonly os: string;
  readonly arch: string;
  readonly kernel: string;
  readonly osImage: string;
  readonly addresses: readonly { readonly type: string; readonly address: string }[];
}

export interface DaemonSetFacts {
  readonly namespace: string;
  readonly name: string;
  /** Of all containers; variables without a plain value are left out. */
  readonly env: Readonly<Record<string, string>>;
}

interface BalancedFacts {
  readonly name: string;
  /** Undefined: it waits for one. */
  readonly address?: string;
}

export interface ClusterFacts {
  /** `gitVersion`, for example v1.34.4+k3s1. */
  readonly version: string;
  /** API groups that are served. */
  readonly groups: readonly string[];
  /** Without virtual ones. */
  readonly nodes: readonly NodeFacts[];
  /** Of kube-system and the namespaces of CNIs. */
  readonly daemonSets: readonly DaemonSetFacts[];
  /** `data` of ConfigMaps that tell settings, by `namespace/name`; absent ones have no entry. */
  readonly settings: Readonly<Record<string, Readonly<Record<string, string>>>>;
  /** Services of type LoadBalancer. */
  readonly balanced: readonly BalancedFacts[];
  /** HOST:PORT of each API server, as the Service default/kubernetes has them. */
  readonly apiEndpoints: readonly string[];
}

const settingsOf = [
  ['kube-system', 'cilium-config'],
  ['kube-system', 'kubeadm-config'],
  ['kube-flannel', 'kube-flannel-cfg'],
  ['kube-system', 'kube-flannel-cfg'],
  ['kube-system', 'calico-config'],
] as const;

const cniNamespaces = [
  'kube-system',
  'kube-flannel',
  'calico-system',
  'cilium',
  'openshift-ovn-kubernetes',
  'openshift-multus',
];

/** Fails with the refusal of the first read; what is not served counts as absent. */
export async function readClusterFacts(kube: KubeClient): Promise<ClusterFacts> {
  const [version, groups, realNodes, sets, balanced, slices, settings] = await Promise.all([
    kube.version(),
    servedGroups(kube),
    kube.collect(nodes, (node) => (isVirtualNode(node) ? undefined : nodeFacts(node))),
    Promise.all(cniNamespaces.map((namespace) => kube.list(daemonSets, undefined, namespace))),
    kube.collect(services, balancedFacts, smallObjects),
    kube.list(endpointSlices, 'kubernetes.io/service-name=kubernetes', 'default'),
    Promise.all(settingsOf.map(([namespace, name]) => dataOf(kube, namespace, name))),
  ]);
  return {
    version,
    groups,
    nodes: realNodes,
    daemonSets: sets.flat().map(({ metadata, spec }) => ({
      namespace: metadata.namespace ?? '',
      name: metadata.name,
      env: Object.fromEntries(
        (spec?.template.spec?.containers ?? []).flatMap(({ env = [] }) =>
          env.flatMap(({ name, value }) => (value === undefined ? [] : [[name, value] as const])),
        ),
      ),
    })),
    settings: Object.fromEntries(settings.flat()),
    balanced,
    apiEndpoints: slices.flatMap(({ endpoints = [], ports = [] }) =>
      endpoints.flatMap(({ addresses }) => addresses.map((address) => `${address}:${ports?.[0]?.port ?? 443}`)),
    ),
  };
}

async function servedGroups(kube: KubeClient): Promise<string[]> {
  const { groups = [] } = JSON.parse(await kube.path('/apis')) as { groups?: readonly { readonly name: string }[] };
  return groups.map(({ name }) => name).sort();
}

async function dataOf(kube: KubeClient, namespace: string, name: string): Promise<[string, Record<string, string>][]> {
  const map = await kube.get(configMaps, { namespace, name });
  return map === undefined ? [] : [[`${namespace}/${name}`, map.data ?? {}]];
}

/** Undefined of a Service of another type. */
function balancedFacts({ metadata, spec, status }: Service): BalancedFacts | undefined {
  if (spec?.type !== 'LoadBalancer') return undefined;
  const [first] = status?.loadBalancer?.ingress ?? [];
  const address = first?.ip ?? first?.hostname;
  return { name: `${metadata.namespace}/${metadata.name}`, ...(address !== undefined && { address }) };
}

const nodeFacts = ({ metadata, spec, status }: Node): NodeFacts => ({
  name: metadata.name,
  labels: metadata.labels ?? {},
  providerId: spec?.providerID ?? '',
  os: status?.nodeInfo?.operatingSystem ?? metadata.labels?.['kubernetes.io/os'] ?? '',
  arch: status?.nodeInfo?.architecture ?? metadata.labels?.['kubernetes.io/arch'] ?? '',
  kernel: status?.nodeInfo?.kernelVersion ?? '',
  osImage: status?.nodeInfo?.osImage ?? '',
  addresses: (status?.addresses ?? []).map(({ type, address }) => ({ type, address })),
});
