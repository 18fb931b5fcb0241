/** The network part of what is asked for: what may be asked, what it is when nothing is said, and what the two clusters allow. */
import { isWithin } from '#shared/domain/cidr.ts';
import { AppError } from '#shared/errors/app-error.ts';
import { gatewayServiceTypes } from '#shared/schema/api/network.ts';
import { Mtu } from '#shared/schema/definition/addresses.ts';
import { type ClusterFacts, networkCapability, type PeeringRole } from '#shared/schema/protocol/agent-protocol.ts';
import type { AskedNetwork, NetworkTerms } from '../../model/network-terms.ts';
import { isAbout, lists, type PeerOwner } from './consent.ts';

/** One of the two clusters, as the other one sees it. */
interface Party {
  readonly id: string;
  readonly facts: ClusterFacts;
  /** Whose cluster its peer is. */
  readonly peerOwner?: PeerOwner | undefined;
}

export type Parties = Readonly<Record<PeeringRole, Party>>;

const defaultLinkMtu = 1340;

/** Its ranges may be told a little later. */
export const canLink = ({ capabilities }: ClusterFacts): boolean => capabilities.includes(networkCapability);

/** Why a cluster will not be linked with a peer; undefined when it will. Any policy that allows it is enough. */
function linkObjection(role: PeeringRole, { id, facts, peerOwner }: Party, peer: Party): string | undefined {
  const side = role === 'consumer' ? 'asConsumer' : 'asProvider';
  const matching = facts.policies.filter(
    (policy) => isAbout(policy, peerOwner) && policy[side].enabled && lists(policy[side].peers, peer.id),
  );
  const announced = [...(peer.facts.network?.podCidrs ?? []), ...(peer.facts.network?.externalCidrs ?? [])];
  const objections = matching.map(({ name, network }) => {
    if (network === undefined) return undefined;
    if (!network.enabled) return `PeeringPolicy ${name} of ${id} forbids links`;
    const stray = announced.find((range) => !isWithin(range, network.remoteCidrs));
    return stray && `${peer.id} has ${stray}; PeeringPolicy ${name} of ${id} accepts ${network.remoteCidrs.join(', ')}`;
  });
  return objections.includes(undefined) ? undefined : objections[0];
}

const objectionOf = (parties: Parties): string | undefined =>
  linkObjection('provider', parties.provider, parties.consumer) ??
  linkObjection('consumer', parties.consumer, parties.provider);

const invalid = (field: string, value: unknown, accepted: string, why = ''): AppError =>
  new AppError('invalid_input', `network.${field} is ${String(value)}${why}; accepted is ${accepted}`, {
    detail: { field: `network.${field}`, value, accepted },
  });

/** Refuses terms that could not hold between any two clusters. */
export function checkNetwork({ gatewayLocation, mtu, serviceType, enabled, inBand }: AskedNetwork): void {
  if (mtu !== undefined && !Mtu.safeParse(mtu).success) throw invalid('mtu', mtu, 'a whole number from 1280 to 65535');
  if (gatewayLocation !== undefined && gatewayLocation !== 'consumer' && gatewayLocation !== 'provider')
    throw invalid('gatewayLocation', gatewayLocation, 'consumer or provider');
  if (serviceType !== undefined && !gatewayServiceTypes.includes(serviceType))
    throw invalid('serviceType', serviceType, gatewayServiceTypes.join(', '));
  if (inBand && enabled === false)
    throw invalid('inBand', true, 'false', ' without a network: the API server is reached through the link');
}

/** What holds from now on. Refuses what these two clusters cannot do or do not allow. */
export function settleNetwork(
  requested: AskedNetwork | undefined,
  before: NetworkTerms | undefined,
  {
    discreet = false,
    ...parties
  }: Parties & {
    /** Of two tenants: neither hears the other's policies. */
    readonly discreet?: boolean;
  },
): NetworkTerms {
  const { consumer, provider } = parties;
  checkNetwork(requested ?? {});
  const unable = [consumer, provider].find(({ facts }) => !canLink(facts));
  const possible = unable === undefined && objectionOf(parties) === undefined;
  // A peering that was made before there were networks gets one when a caller asks for it.
  const enabled = requested?.enabled ?? before?.enabled ?? possible;
  const serviceType = requested?.serviceType ?? before?.serviceType;
  const terms: NetworkTerms = {
    enabled,
    gatewayLocation: requested?.gatewayLocation ?? before?.gatewayLocation ?? 'provider',
    mtu: requested?.mtu ?? before?.mtu ?? defaultLinkMtu,
    ...(serviceType === undefined ? {} : { serviceType }),
    inBand: requested?.inBand ?? (enabled && (before?.inBand ?? false)),
  };
  if (requested?.enabled && unable) {
    throw invalid('enabled', true, 'false', `, but the agent of ${unable.id} makes no links; upgrade it`);
  }
  const objection = requested?.enabled ? objectionOf(parties) : undefined;
  if (objection !== undefined) {
    const why = discreet ? 'not both clusters allow it' : objection;
    throw new AppError('policy_refused', `network.enabled is true; accepted is false: ${why}`, {
      detail: { field: 'network.enabled', value: true, accepted: 'false' },
    });
  }
  if (requested?.inBand) mustOfferProxy(terms, provider);
  return terms;
}

function mustOfferProxy({ enabled }: NetworkTerms, { id, facts }: Party): void {
  if (!enabled)
    throw invalid('inBand', true, 'false', ' without a network: the API server is reached through the link');
  if (facts.network?.apiServerProxy === undefined)
    throw invalid('inBand', true, 'false', `, but ${id} offers no proxy to its API server`);
}
