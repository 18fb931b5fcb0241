/** The NetworkPolicy by which a consumer's namespaces are apart from other guests and from the provider's own network (docs/guests.md). Pure. */
import { covering, parseCidr } from '#shared/domain/cidr.ts';
import type { Node } from '#shared/domain/kube-object.ts';
import { label } from '#shared/domain/liqo-keys.ts';
import { networkLabel, networkType } from '#shared/domain/network-keys.ts';
import type { Configuration } from '#shared/schema/liqo/configuration.ts';
import type { Network } from '#shared/schema/liqo/network.ts';
import type { GuestRules } from '../guests/decide.ts';

export interface IsolationFacts {
  readonly consumer: string;
  readonly rules: Pick<GuestRules, 'closedRanges' | 'networkPeers'>;
  readonly configurations: readonly Configuration[];
  readonly networks: readonly Network[];
  /** Of this cluster. */
  readonly nodes: readonly Node[];
}

const everything = '0.0.0.0/0';
const everythingV6 = '::/0';
const dnsNamespaces = ['kube-system', 'openshift-dns'];
/** OpenShift's resolvers listen at 5353. */
const dnsPorts = [53, 5353].flatMap((port) => ['UDP', 'TCP'].map((protocol) => ({ protocol, port })));
/** Where kubelets send pods to that use the cache of their node. */
const nodeLocalDns = '169.254.20.10/32';

const isV6 = (range: string): boolean => range.includes(':');
const peerOf = ({ metadata }: Configuration): string => metadata.labels?.[label.remoteClusterId] ?? '';
const rangesOf = ({ status }: Configuration): string[] => {
  const { pod = [], external = [] } = status?.remote?.cidr ?? {};
  return [...pod, ...external].filter((range) => parseCidr(range) !== undefined);
};

function ownPodRanges(networks: readonly Network[], nodes: readonly Node[]): string[] {
  const granted = networks
    .filter(({ metadata }) => metadata.labels?.[networkLabel.networkType] === networkType.pod)
    .flatMap(({ status }) => status?.cidr ?? []);
  return [...granted, ...nodes.flatMap(({ spec }) => spec?.podCIDRs ?? spec?.podCIDR ?? [])];
}

const sorted = (ranges: readonly string[]): string[] => [...covering(ranges.filter((range) => !isV6(range)))].sort();
const block = (cidr: string, except: readonly string[] = []) => ({
  ipBlock: { cidr, ...(except.length > 0 && { except: [...except] }) },
});

/** What is excepted must be less than all. */
const outsideOf = (all: string, except: readonly string[]) => (except.includes(all) ? [] : [block(all, except)]);

/**
 * Guests reach their own namespaces, the DNS of this cluster, their consumer through the link, and the outside without its closed ranges. Provider's
 * pods, the consumer and the outside reach them. What this cluster does not know as a range of its own or of another peer counts as the outside.
 */
export function isolationOf({ consumer, rules, configurations, networks, nodes }: IsolationFacts) {
  const isOpen = (peer: string): boolean => peer === consumer || rules.networkPeers.includes(peer);
  const open = sorted(configurations.filter((one) => isOpen(peerOf(one))).flatMap(rangesOf));
  const strangers = configurations.filter((one) => !isOpen(peerOf(one))).flatMap(rangesOf);
  const local = ownPodRanges(networks, nodes);
  const ofConsumer = { namespaceSelector: { matchLabels: { [label.remoteClusterId]: consumer } } };
  /** Without the tenant namespace, where the gateways of the link run: packets pass through them, none is for them. */
  const ofGuests = {
    namespaceSelector: {
      ...ofConsumer.namespaceSelector,
      matchExpressions: [{ key: label.tenantNamespace, operator: 'DoesNotExist' }],
    },
  };
  const ofProvider = {
    namespaceSelector: { matchExpressions: [{ key: label.remoteClusterId, operator: 'DoesNotExist' }] },
  };
  const ofDns = {
    namespaceSelector: {
      matchExpressions: [{ key: 'kubernetes.io/metadata.name', operator: 'In', values: dnsNamespaces }],
    },
  };
  /** Without what is `closed`; a rule without peers would mean all of them. */
  const outside = (closed: readonly string[]) => [
    ...outsideOf(everything, sorted(closed)),
    ...(local.some(isV6) ? outsideOf(everythingV6, [...new Set(closed.filter(isV6))].sort()) : []),
  ];
  const reached = outside([...local, ...strangers, ...rules.closedRanges]);
  return {
    podSelector: {},
    policyTypes: ['Ingress', 'Egress'],
    ingress: [{ from: [ofProvider, ofConsumer, ...outside([...local, ...strangers])] }],
    egress: [
      { to: [ofGuests, ...open.map((range) => block(range))] },
      { to: [ofDns, block(nodeLocalDns)], ports: dnsPorts },
      ...(reached.length > 0 ? [{ to: reached }] : []),
    ],
  };
}
