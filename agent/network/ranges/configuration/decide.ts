/** From the ranges of a peer to the Networks by which they are granted, and back to one answer. Pure. */
import type { Applied } from '#kube/model/types.ts';
import {
  type Condition,
  type ConditionInput,
  findCondition,
  removeCondition,
  setCondition,
} from '#kube/writes/conditions.ts';
import { formatAddress, isWithin, parseCidr, rangeProblem } from '#shared/domain/cidr.ts';
import { apiVersionOf, type KubeObject, type OwnerReference } from '#shared/domain/kube-object.ts';
import { label } from '#shared/domain/liqo-keys.ts';
import {
  isthmusNetworkAnnotation,
  type NetworkType,
  networkCidrsConfigured,
  networkLabel,
  networkName,
  networkType,
} from '#shared/domain/network-keys.ts';
import type { PeeringPolicy } from '#shared/schema/isthmus/peering-policy.ts';
import type {
  ClusterCidrs,
  ClusterConfig,
  Configuration,
  ConfigurationStatus,
} from '#shared/schema/liqo/configuration.ts';
import type { Ip } from '#shared/schema/liqo/ip.ts';
import type { Network } from '#shared/schema/liqo/network.ts';
import { networkKinds } from '#shared/schema/liqo/network-resources.ts';

/** What a peer may have: private, shared (RFC 6598) and benchmark (RFC 2544) space. A public range would take real hosts' packets into the tunnel. */
const announceable = ['10.0.0.0/8', '172.16.0.0/12', '192.168.0.0/16', '100.64.0.0/10', '198.18.0.0/15'];

type RangeType = 'pod' | 'external';
export interface PeerRange {
  readonly type: RangeType;
  readonly cidr: string;
}

const remoteRanges = ({ spec }: Configuration): readonly PeerRange[] =>
  (['pod', 'external'] as const).flatMap((type) =>
    [...new Set(spec.remote.cidr[type])].map((cidr) => ({ type, cidr })),
  );

/** The ranges that a PeeringPolicy about this peer names exactly: each is kept as announced while it is free, public and small ones, too. */
export const namedRanges = (policies: readonly PeeringPolicy[], peer: string): ReadonlySet<string> =>
  new Set(
    policies
      .filter(({ spec }) =>
        [spec.asConsumer, spec.asProvider].some((side) => side?.peers.some((one) => one === '*' || one === peer)),
      )
      .flatMap(({ spec }) => spec.network?.remoteCidrs ?? []),
  );

/** Which range is refused and why; undefined when all may be had. */
export function refusedRange(configuration: Configuration, named: ReadonlySet<string> = new Set()): string | undefined {
  for (const type of ['pod', 'external'] as const)
    for (const [index, cidr] of (configuration.spec.remote.cidr[type] ?? []).entries()) {
      const problem =
        rangeProblem(cidr) ??
        (isWithin(cidr, announceable) || named.has(cidr)
          ? undefined
          : `is ${cidr}: accepted is a part of ${announceable.join(', ')}, and a range that spec.network.remoteCidrs of a PeeringPolicy names`);
      if (problem !== undefined) return `spec.remote.cidr.${type}[${index}] ${problem}`;
    }
  return undefined;
}

export function localConfig(networks: readonly Network[]): ClusterConfig | undefined {
  const of = (type: NetworkType): string[] =>
    [
      ...new Set(
        networks
          .filter(({ metadata }) => metadata.labels?.[networkLabel.networkType] === type)
          .flatMap(({ status }) => status?.cidr ?? []),
      ),
    ].sort();
  const cidr = { pod: of(networkType.pod), external: of(networkType.external) };
  return cidr.pod.length > 0 && cidr.external.length > 0 ? { cidr } : undefined;
}

export function buildRemoteNetwork(
  { metadata }: KubeObject,
  { type, cidr }: PeerRange,
  peer: string,
  owner: OwnerReference,
  isNamed = false,
): Applied<Network> {
  return {
    apiVersion: apiVersionOf(networkKinds.networks),
    kind: networkKinds.networks.kind,
    metadata: {
      name: networkName.remoteNetwork(metadata.name, type, cidr),
      namespace: metadata.namespace ?? '',
      labels: { [label.managed]: 'true', [label.remoteClusterId]: peer, [networkLabel.cidrType]: type },
      ...(isNamed && { annotations: { [isthmusNetworkAnnotation.rangeNamed]: 'true' } }),
      ownerReferences: [owner],
    },
    spec: { cidr },
  };
}

/** Reserves an address by which other peers see what comes from this peer without an address of its own. */
export function buildUnknownSource(
  configuration: Configuration,
  view: string | undefined,
  peer: string,
  owner: OwnerReference,
): Applied<Ip> | undefined {
  const range = view === undefined ? undefined : parseCidr(view);
  if (range === undefined) return undefined;
  return {
    apiVersion: apiVersionOf(networkKinds.ips),
    kind: networkKinds.ips.kind,
    metadata: {
      name: networkName.unknownSource(configuration.metadata.name),
      namespace: configuration.metadata.namespace ?? '',
      labels: { [label.managed]: 'true', [label.remoteClusterId]: peer },
      ownerReferences: [owner],
    },
    spec: { ip: formatAddress(range.base) },
  };
}

export interface NetworkPlan {
  readonly remove: readonly Network[];
  readonly create: readonly PeerRange[];
}

/** New ranges are asked for only when those no longer wanted are gone: an edit never holds both. `own`: children of this incarnation. */
export function planNetworks(configuration: Configuration, own: readonly Network[]): NetworkPlan {
  const nameOf = ({ type, cidr }: PeerRange): string =>
    networkName.remoteNetwork(configuration.metadata.name, type, cidr);
  const wanted = remoteRanges(configuration);
  const names = new Map(wanted.map((range) => [nameOf(range), range]));
  const isWanted = ({ metadata, spec }: Network): boolean =>
    names.get(metadata.name)?.cidr === spec.cidr && metadata.deletionTimestamp === undefined;
  const unwanted = own.filter((network) => !isWanted(network));
  const remove = unwanted.filter(({ metadata }) => metadata.deletionTimestamp === undefined);
  if (unwanted.length > 0) return { remove, create: [] };
  const there = new Set(own.map(({ metadata }) => metadata.name));
  return { remove, create: wanted.filter((range) => !there.has(nameOf(range))) };
}

export interface Verdict {
  readonly reason: string;
  readonly message: string;
  /** Only when every range is granted. */
  readonly remote?: ClusterConfig;
}

export function verdictOf(configuration: Configuration, own: readonly Network[]): Verdict {
  const of = (type: RangeType): (Network | undefined)[] =>
    (configuration.spec.remote.cidr[type] ?? []).map((cidr) =>
      own.find(
        ({ metadata, spec }) =>
          metadata.name === networkName.remoteNetwork(configuration.metadata.name, type, cidr) &&
          spec.cidr === cidr &&
          metadata.deletionTimestamp === undefined,
      ),
    );
  const [pod, external] = [of('pod'), of('external')];
  const all = [...pod, ...external];
  const views = (networks: typeof all): string[] => networks.flatMap((one) => one?.status?.cidr ?? []);
  if (views(all).length === all.length && !own.some(({ metadata }) => metadata.deletionTimestamp !== undefined))
    return {
      reason: networkCidrsConfigured,
      message: 'every range of the peer has one here',
      remote: { cidr: { pod: views(pod), external: views(external) } },
    };
  for (const one of all) {
    const refused = findCondition(one?.status?.conditions as readonly Condition[] | undefined, 'Granted');
    if (one && refused?.status === 'False')
      return { reason: refused.reason, message: `Network ${one.metadata.name}: ${refused.message}` };
  }
  return { reason: 'WaitingForNetworks', message: 'waiting for the Networks of the ranges' };
}

/** Only while it is False; says that these are not the ranges that the peer has. */
export const peerRangesCondition = 'PeerRanges';

/**
 * How the ranges in the Configuration differ from those that the peer announces through the link. Undefined: they do not, or the peer announces none,
 * as Liqo does not. A wrong range breaks no link: it only sends packets to pods that do not exist.
 */
export function rangesDiffer({ spec }: Configuration, announced: ClusterCidrs | undefined): string | undefined {
  if (announced === undefined) return undefined;
  const text = (ranges: readonly string[] = []): string => [...new Set(ranges)].sort().join(', ');
  const different = (['pod', 'external'] as const).flatMap((type) => {
    const [written, real] = [text(spec.remote.cidr[type]), text(announced[type])];
    return written === real ? [] : [`spec.remote.cidr.${type} is ${written || 'empty'}, the peer has ${real}`];
  });
  return different.length === 0
    ? undefined
    : `${different.join('; ')}, as it says itself through the link; pods do not reach each other until both are the same`;
}

/** Views that were granted stay visible while others are awaited: the condition says that they are not those of this generation. */
export function configurationStatus(
  configuration: Configuration,
  verdict: Verdict,
  nowMs: number,
  differ?: string,
): ConfigurationStatus {
  const { status, metadata } = configuration;
  const input = {
    type: networkCidrsConfigured,
    status: verdict.remote ? 'True' : 'False',
    reason: verdict.reason,
    message: verdict.message,
    ...(metadata.generation === undefined ? {} : { observedGeneration: metadata.generation }),
  } satisfies ConditionInput;
  const remote = verdict.remote ?? status?.remote;
  const known = setCondition(status?.conditions as readonly Condition[] | undefined, input, nowMs);
  const { observedGeneration } = input;
  const said =
    differ === undefined
      ? removeCondition(known, peerRangesCondition)
      : setCondition(
          known,
          {
            type: peerRangesCondition,
            status: 'False',
            reason: 'RangesDiffer',
            message: differ,
            ...(observedGeneration === undefined ? {} : { observedGeneration }),
          },
          nowMs,
        );
  return { ...(remote === undefined ? {} : { remote }), conditions: [...said] };
}
