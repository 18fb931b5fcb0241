/** Which ranges a cluster uses for pods and Services, judged from what can be read in it, and which one it gets for peers. Pure. */
import { createHash } from 'node:crypto';
import {
  type CidrRange,
  containsRange,
  formatCidr,
  overlap,
  parseAddress,
  parseCidr,
  rangeProblem,
} from '#shared/domain/cidr.ts';

/** Texts as found; none has been checked. */
export interface RangeFacts {
  /** `spec.podCIDRs` of all nodes that are not virtual. */
  readonly nodePodCidrs: readonly string[];
  readonly nodeAddresses: readonly string[];
  /** Pools of Calico; `cluster-pool-ipv4-cidr` of Cilium; `Network` of Flannel. */
  readonly cniPools: readonly string[];
  /** `networking` of kubeadm's ClusterConfiguration, YAML. */
  readonly kubeadm?: string;
  /** kube-proxy's configuration, YAML. */
  readonly kubeProxy?: string;
  /** Arguments of the API server, controller manager and kube-proxy, where they are pods. */
  readonly arguments: readonly string[];
  /** Of the ServiceCIDR objects. */
  readonly serviceCidrs: readonly string[];
  /** Cluster IP of the Service `kubernetes`. */
  readonly kubernetesService?: string;
}

export interface Found {
  readonly cidrs: readonly string[];
  /** Where from, for people. */
  readonly source: string;
  /** True: it may be wrong, and a person should look. */
  readonly guess?: true;
}

/** Lists may be joined with commas and hold IPv6, which is left out. */
const ipv4 = (texts: readonly (string | undefined)[]): string[] => [
  ...new Set(
    texts
      .flatMap((text) => text?.split(',') ?? [])
      .flatMap((text) => parseCidr(text.trim()) ?? [])
      .map(formatCidr),
  ),
];

const yamlValue = (text: string | undefined, key: string): string | undefined =>
  new RegExp(`^\\s*${key}:\\s*["']?([^"'\\s#]+)`, 'm').exec(text ?? '')?.[1];
const argument = (all: readonly string[], name: string): string[] =>
  all.filter((text) => text.startsWith(`--${name}=`)).map((text) => text.slice(name.length + 3));

const first = (candidates: readonly Found[]): Found | undefined => candidates.find(({ cidrs }) => cidrs.length > 0);

/** Undefined: nothing says it. */
export function findPodCidrs(facts: RangeFacts): Found | undefined {
  return (
    first([
      { cidrs: ipv4(facts.cniPools), source: 'the configuration of the CNI' },
      { cidrs: ipv4([yamlValue(facts.kubeadm, 'podSubnet')]), source: 'ConfigMap kube-system/kubeadm-config' },
      { cidrs: ipv4(argument(facts.arguments, 'cluster-cidr')), source: '--cluster-cidr of the control plane' },
      { cidrs: ipv4([yamlValue(facts.kubeProxy, 'clusterCIDR')]), source: 'ConfigMap kube-system/kube-proxy' },
    ]) ?? fromNodes(facts)
  );
}

export function findServiceCidr(facts: RangeFacts): Found | undefined {
  return first([
    { cidrs: ipv4(facts.serviceCidrs).slice(0, 1), source: 'the ServiceCIDR objects' },
    { cidrs: ipv4([yamlValue(facts.kubeadm, 'serviceSubnet')]), source: 'ConfigMap kube-system/kubeadm-config' },
    {
      cidrs: ipv4(argument(facts.arguments, 'service-cluster-ip-range')).slice(0, 1),
      source: '--service-cluster-ip-range of the control plane',
    },
    { cidrs: aroundService(facts.kubernetesService), source: 'the address of the Service kubernetes', guess: true },
  ]);
}

/** kubeadm's default where it fits; else the /16 that the address is the first of, or its /24. */
function aroundService(address: string | undefined): string[] {
  const ip = parseAddress(address ?? '');
  if (ip === undefined) return [];
  if (ip === parseAddress('10.96.0.1')) return ['10.96.0.0/12'];
  const length = ip % 2 ** 16 === 1 ? 16 : 24;
  return ipv4([`${address}/${length}`]);
}

/** The usual size of a cluster's range, of which each node gets a part. */
const usualLength = 16;

/** The smallest range around the nodes' parts, and more of it for nodes to come, as far as it takes nothing else in. */
function fromNodes({ nodePodCidrs, nodeAddresses, serviceCidrs }: RangeFacts): Found | undefined {
  const parts = ipv4(nodePodCidrs).map((text) => parseCidr(text) as CidrRange);
  const [one, ...others] = parts;
  if (!one) return undefined;
  const cover = others.reduce(smallestAround, one);
  const avoid = [
    ...ipv4(serviceCidrs).map((text) => parseCidr(text) as CidrRange),
    ...nodeAddresses.flatMap((text) => parseCidr(`${text}/32`) ?? []),
  ];
  let range = cover;
  while (range.length > usualLength) {
    const wider = widened(range);
    if (avoid.some((taken) => overlap(taken, wider))) break;
    range = wider;
  }
  // Nodes far apart, or one range for each: what they have is all that is known.
  if (cover.length < 8) return { cidrs: parts.map(formatCidr), source: "the nodes' ranges", guess: true };
  return { cidrs: [formatCidr(range)], source: "the nodes' ranges", guess: true };
}

const widened = ({ base, length }: CidrRange): CidrRange =>
  parseCidr(`${formatCidr({ base, length }).split('/')[0]}/${length - 1}`) as CidrRange;

function smallestAround(a: CidrRange, b: CidrRange): CidrRange {
  let range = a;
  while (!containsRange(range, b)) range = widened(range);
  return range;
}

/** Ranges that installers use for pods, Services and overlays unless told otherwise: peers are likely to have them. */
const popular = [
  '10.0.0.0/15',
  '10.42.0.0/15',
  '10.80.0.0/16',
  '10.96.0.0/12',
  '10.128.0.0/14',
  '10.200.0.0/16',
  '10.244.0.0/16',
];

/**
 * A /16 of 10.0.0.0/8 for what this cluster exposes: another one for each cluster ID, so that peers need no translation, and none that
 * `taken` or a popular default has a part in. The same ID and the same ranges give the same answer.
 */
export function externalCidrFor(clusterId: string, taken: readonly string[]): string {
  const start = createHash('sha256').update(clusterId).digest().readUInt32BE(0) % 256;
  const all = Array.from({ length: 256 }, (_, i) => `10.${(start + i) % 256}.0.0/16`);
  const free = (candidate: string, others: readonly string[]): boolean =>
    !others.some((other) => collide(candidate, other));
  return (
    all.find((one) => free(one, [...taken, ...popular])) ?? all.find((one) => free(one, taken)) ?? (all[0] as string)
  );
}

export function collide(a: string, b: string): boolean {
  const [x, y] = [parseCidr(a), parseCidr(b)];
  return x !== undefined && y !== undefined && overlap(x, y);
}

/** All ranges of one cluster, ready to be installed. */
export interface ClusterRanges {
  readonly podCidrs: readonly string[];
  readonly serviceCidr: string;
  readonly externalCidr: string;
  readonly internalCidr: string;
  readonly reservedSubnets: readonly string[];
  /** Given by a person: granted as they are, or refused. */
  readonly fixed: { readonly external: boolean; readonly internal: boolean };
}

export interface RangeFault {
  readonly flag: string;
  readonly value: string;
  readonly problem: string;
}

/** Pod, Service and reserved ranges may share addresses (a reserved range may say so of the pods'); everything else may not. */
export function rangeFault(ranges: ClusterRanges): RangeFault | undefined {
  const named = [
    ...ranges.podCidrs.map((value) => ({ flag: 'pod-cidr', value })),
    { flag: 'service-cidr', value: ranges.serviceCidr },
    ...ranges.reservedSubnets.map((value) => ({ flag: 'reserved-subnet', value })),
    { flag: 'external-cidr', value: ranges.externalCidr },
    { flag: 'internal-cidr', value: ranges.internalCidr },
  ];
  for (const [i, one] of named.entries()) {
    const problem = rangeProblem(one.value);
    if (problem !== undefined) return { ...one, problem };
    const other = named
      .slice(0, i)
      .find((before) => collide(before.value, one.value) && !mayShare(before.flag, one.flag));
    if (other) {
      return {
        ...one,
        problem: `is ${one.value}, which overlaps --${other.flag} ${other.value}: accepted is a range with no address in common`,
      };
    }
  }
  return undefined;
}

const sharing = ['pod-cidr', 'service-cidr', 'reserved-subnet'];
const mayShare = (a: string, b: string): boolean => a !== b && sharing.includes(a) && sharing.includes(b);
