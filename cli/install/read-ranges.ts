/** Reads in a cluster what tells its ranges, and settles them with what a person said and what is installed already. */
import type { KubeClient } from '#cli/cluster/open.ts';
import { configMaps, daemonSets, nodes, pods, services } from '#shared/domain/core-kinds.ts';
import type { KubeObject, Node, ResourceType } from '#shared/domain/kube-object.ts';
import { systemNamespace } from '#shared/domain/liqo-keys.ts';
import { fabricName, networkLabel, networkName, networkType } from '#shared/domain/network-keys.ts';
import { isVirtualNode } from '#shared/domain/virtual-nodes.ts';
import { AppError } from '#shared/errors/app-error.ts';
import type { Network } from '#shared/schema/liqo/network.ts';
import { networkKinds } from '#shared/schema/liqo/network-resources.ts';
import { fullMasqueradeEnv } from './arrangement.ts';
import type { NetworkInstallOptions } from './manifests.ts';
import {
  type ClusterRanges,
  externalCidrFor,
  type Found,
  findPodCidrs,
  findServiceCidr,
  type RangeFacts,
  rangeFault,
} from './ranges.ts';

/** What a person said; everything may be absent. */
export interface NetworkFlags {
  readonly podCidr: readonly string[];
  readonly serviceCidr?: string;
  readonly externalCidr?: string;
  readonly internalCidr?: string;
  readonly reservedSubnet: readonly string[];
  readonly gatewayReplicas?: number;
  readonly fullMasquerade?: boolean;
}

export interface Settled extends NetworkInstallOptions {
  /** What was found where, for people. */
  readonly notes: readonly string[];
}

const within = { namespace: 'kube-system' } as const;
const defaultInternalCidr = '10.80.0.0/16';

type WithSpec = KubeObject & { readonly spec?: { readonly cidr?: string; readonly cidrs?: readonly string[] } };
const clusterKind = (group: string, version: string, kind: string, plural: string): ResourceType<WithSpec> => ({
  group,
  version,
  kind,
  plural,
  namespaced: false,
});
const serviceCidrKinds = ['v1', 'v1beta1'].map((version) =>
  clusterKind('networking.k8s.io', version, 'ServiceCIDR', 'servicecidrs'),
);
const calicoPools = clusterKind('crd.projectcalico.org', 'v1', 'IPPool', 'ippools');

async function readRangeFacts(kube: KubeClient): Promise<RangeFacts> {
  const data = async (name: string, namespace: string = within.namespace): Promise<Record<string, string>> =>
    (await kube.get(configMaps, { namespace, name }))?.data ?? {};
  const [real, systemPods, kubernetes, pools, ...serviceCidrs] = await Promise.all([
    kube.collect(nodes, rangesOfNode),
    kube.list(pods, 'tier=control-plane'),
    kube.get(services, { namespace: 'default', name: 'kubernetes' }),
    kube.list(calicoPools),
    ...serviceCidrKinds.map((type) => kube.list(type)),
  ] as const);
  const [kubeadm, proxy, cilium, flannel, oldFlannel] = await Promise.all([
    data('kubeadm-config'),
    data('kube-proxy'),
    data('cilium-config'),
    data('kube-flannel-cfg', 'kube-flannel'),
    data('kube-flannel-cfg'),
  ]);
  const flannelNetwork = [flannel, oldFlannel].flatMap(
    (map) => /"Network"\s*:\s*"([^"]+)"/.exec(map?.['net-conf.json'] ?? '')?.[1] ?? [],
  );
  const ciliumPool = cilium['cluster-pool-ipv4-cidr'];
  const kubernetesService = kubernetes?.spec?.clusterIP;
  const kubeadmText = kubeadm.ClusterConfiguration;
  const proxyText = proxy['config.conf'];
  return {
    nodePodCidrs: real.flatMap(({ podCidrs }) => podCidrs),
    nodeAddresses: real.flatMap(({ addresses }) => addresses),
    cniPools: [
      ...pools.flatMap(({ spec }) => spec?.cidr ?? []),
      ...(ciliumPool ? ciliumPool.split(/[\s,]+/) : []),
      ...flannelNetwork,
    ],
    arguments: systemPods.flatMap(({ spec }) =>
      (spec?.containers ?? []).flatMap(({ command = [], args = [] }) => [...command, ...args]),
    ),
    serviceCidrs: serviceCidrs.flat().flatMap(({ spec }) => spec?.cidrs ?? []),
    ...(kubernetesService !== undefined && { kubernetesService }),
    ...(kubeadmText !== undefined && { kubeadm: kubeadmText }),
    ...(proxyText !== undefined && { kubeProxy: proxyText }),
  };
}

/** Undefined of a virtual node. */
function rangesOfNode(
  node: Node,
): { readonly podCidrs: readonly string[]; readonly addresses: readonly string[] } | undefined {
  if (isVirtualNode(node)) return undefined;
  const { spec, status } = node;
  return {
    podCidrs: [spec?.podCIDRs ?? spec?.podCIDR ?? []].flat(),
    addresses: (status?.addresses ?? []).flatMap(({ type, address }) => (type === 'InternalIP' ? [address] : [])),
  };
}

/** Fails with `invalid_input` that names the flag when a range is missing, malformed, taken, or other than what is installed. */
export async function settleNetwork(kube: KubeClient, clusterId: string, flags: NetworkFlags): Promise<Settled> {
  const [facts, installed, fabric, template] = await Promise.all([
    readRangeFacts(kube),
    kube.list(networkKinds.networks),
    kube.get(daemonSets, { namespace: systemNamespace, name: fabricName }),
    kube.get(networkKinds.wgGatewayServerTemplates, { namespace: systemNamespace, name: networkName.serverTemplate }),
  ]);
  const { ranges, notes } = settleRanges(clusterId, flags, facts, installed);
  const before = fabric?.spec?.template.spec?.containers[0]?.env?.find(({ name }) => name === fullMasqueradeEnv)?.value;
  const fullMasquerade = flags.fullMasquerade ?? (before === 'true' || undefined);
  const deployment = template?.spec.template.spec?.deployment as { spec?: { replicas?: number } } | undefined;
  const gatewayReplicas = flags.gatewayReplicas ?? deployment?.spec?.replicas;
  return {
    ranges,
    notes,
    ...(gatewayReplicas !== undefined && { gatewayReplicas }),
    ...(fullMasquerade !== undefined && { fullMasquerade }),
  };
}

/** Pure. A range that is installed stays: peers know it. */
export function settleRanges(
  clusterId: string,
  flags: NetworkFlags,
  facts: RangeFacts,
  installed: readonly Network[],
): { readonly ranges: ClusterRanges; readonly notes: readonly string[] } {
  const notes: string[] = [];
  const own = installed.filter(({ metadata }) => metadata.namespace === systemNamespace);
  const installedOf = (type: string): string[] =>
    own.filter(({ metadata }) => metadata.labels?.[networkLabel.networkType] === type).map(({ spec }) => spec.cidr);
  const choose = (flag: string, type: string, requested: readonly string[], find: () => Found | undefined): Found => {
    const before = installedOf(type);
    if (before.length > 0) {
      if (requested.length > 0 && requested.join() !== before.join()) {
        throw fault(
          flag,
          requested.join(),
          `is ${requested.join()}, but ${before.join()} is installed and known to peers`,
          {
            remedy: `leave the flag out, or let the cluster leave and join again`,
          },
        );
      }
      return { cidrs: before, source: 'as installed' };
    }
    if (requested.length > 0) return { cidrs: requested, source: `--${flag}` };
    const found = find();
    if (!found) {
      throw fault(
        flag,
        '',
        'is not given, and nothing in the cluster tells it: accepted is an IPv4 range such as 10.0.0.0/16',
        {
          remedy: `say it with --${flag}, or do without the network with --no-network`,
        },
      );
    }
    return found;
  };
  const one = (text: string | undefined): string[] => (text === undefined ? [] : [text]);
  const service = choose('service-cidr', networkType.service, one(flags.serviceCidr), () => findServiceCidr(facts));
  const pod = choose('pod-cidr', networkType.pod, flags.podCidr, () =>
    findPodCidrs({ ...facts, serviceCidrs: service.cidrs }),
  );
  const internal = choose('internal-cidr', networkType.internal, one(flags.internalCidr), () => ({
    cidrs: [defaultInternalCidr],
    source: 'default; moved when it is taken',
  }));
  const reservedSubnets = [...new Set([...installedOf(networkType.reserved), ...flags.reservedSubnet])];
  const taken = [
    ...pod.cidrs,
    ...service.cidrs,
    ...internal.cidrs,
    ...reservedSubnets,
    ...facts.nodeAddresses.map((ip) => `${ip}/32`),
  ];
  const external = choose('external-cidr', networkType.external, one(flags.externalCidr), () => ({
    cidrs: [externalCidrFor(clusterId, taken)],
    source: 'by the name of the cluster; moved when it is taken',
  }));
  for (const [what, { cidrs, source, guess }] of Object.entries({ pods: pod, Services: service, peers: external }))
    notes.push(`${what}: ${cidrs.join(', ')} (${guess ? `a guess from ${source}` : source})`);
  const isFixed = (type: string): boolean =>
    own.some(
      ({ metadata: { labels = {} } }) =>
        labels[networkLabel.networkType] === type && labels[networkLabel.networkNotRemapped] === 'true',
    );
  const ranges: ClusterRanges = {
    podCidrs: pod.cidrs,
    serviceCidr: service.cidrs[0] ?? '',
    externalCidr: external.cidrs[0] ?? '',
    internalCidr: internal.cidrs[0] ?? '',
    reservedSubnets,
    fixed: {
      external: flags.externalCidr !== undefined || isFixed(networkType.external),
      internal: flags.internalCidr !== undefined || isFixed(networkType.internal),
    },
  };
  const wrong = rangeFault(ranges);
  // A movable default may stand where it cannot stay: IPAM moves it.
  const movable =
    (wrong?.flag === 'internal-cidr' && !ranges.fixed.internal) ||
    (wrong?.flag === 'external-cidr' && !ranges.fixed.external);
  if (wrong && !movable) throw fault(wrong.flag, wrong.value, wrong.problem);
  return { ranges, notes };
}

const fault = (flag: string, value: string, problem: string, more: Record<string, unknown> = {}): AppError =>
  new AppError('invalid_input', `--${flag} ${problem}`, { detail: { field: flag, value, ...more } });
