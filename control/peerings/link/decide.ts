/**
 * The link between the two clusters of a peering: what the state machine remembers of it, and how a report changes that. A pair that is peered
 * both ways has one link. Both peerings keep the same record of how it is laid out; the peering that made it first decides, and the peering that remains keeps it.
 */

import { parseAddress, rangeProblem } from '#shared/domain/cidr.ts';
import { sameJson } from '#shared/domain/json-equality.ts';
import { networkPort } from '#shared/domain/network-keys.ts';
import type { GatewayServiceType } from '#shared/schema/api/network.ts';
import type { ClusterFacts, PeeringRole } from '#shared/schema/protocol/agent-protocol.ts';
import type { ConnectionReport, Link, LinkEnd, LinkLayout } from '../../model/link.ts';
import type { NetworkTerms } from '../../model/network-terms.ts';
import type { PeeringSpec, SideInput } from '../../model/peering-records.ts';
import { canLink } from '../terms/network-terms.ts';
import type { EndReport } from './reports.ts';

export interface LinkInput {
  readonly spec: Pick<PeeringSpec, 'id' | 'consumer' | 'provider' | 'network'>;
  readonly before: Link | undefined;
  /** Of the peering the other way around, while that lives. */
  readonly opposite: LinkLayout | undefined;
  readonly consumer: Pick<SideInput, 'facts' | 'publicAddresses'>;
  readonly provider: Pick<SideInput, 'facts' | 'publicAddresses'>;
  readonly reports: Readonly<Record<PeeringRole, EndReport>>;
  readonly now: number;
}

/** Undefined: the peering has no link. */
export function nextLink(input: LinkInput): Link | undefined {
  const { spec, before, consumer, provider, reports, now } = input;
  const terms = spec.network;
  // A link that was made stays when an agent is set back to one that makes none: that must be seen, not undone.
  if (!terms?.enabled || !(before || (canLink(consumer.facts) && canLink(provider.facts)))) return undefined;
  const requested = {
    gatewayLocation: terms.gatewayLocation,
    mtu: terms.mtu,
    ...(terms.serviceType === undefined ? {} : { serviceType: terms.serviceType }),
  };
  const layout = nextLayout(input, terms, requested);
  const same = before?.layout.server === layout.server;
  const end = (role: PeeringRole, side: LinkInput['consumer']): LinkEnd =>
    nextEnd(before?.[role], {
      side,
      report: reports[role],
      kind: layout.server === spec[role] ? 'GatewayServer' : 'GatewayClient',
      same,
      now,
    });
  return { layout, asked: requested, consumer: end('consumer', consumer), provider: end('provider', provider) };
}

const isEarlier = (a: LinkLayout, b: LinkLayout): boolean => a.at < b.at || (a.at === b.at && a.by < b.by);

function nextLayout(input: LinkInput, terms: NetworkTerms, requested: Link['asked']): LinkLayout {
  const { spec, before, opposite, now } = input;
  const sameWish = before !== undefined && sameJson(before.asked, requested);
  const mine = before?.layout.by === spec.id;
  if (mine && sameWish)
    return opposite && opposite.by !== spec.id && isEarlier(opposite, before.layout) ? opposite : before.layout;
  // The other peering's link is there already: this one joins it, regardless of its own terms.
  if (opposite && opposite.by !== spec.id) return opposite;
  if (before && !mine && opposite) return isEarlier(opposite, before.layout) ? opposite : before.layout;
  if (before && !mine && sameWish) return before.layout;
  const { facts } = input[terms.gatewayLocation];
  return {
    server: spec[terms.gatewayLocation],
    mtu: terms.mtu,
    serviceType: terms.serviceType ?? defaultServiceType(facts),
    by: spec.id,
    // A change of terms does not make a peering later: the deciding peering stays the same.
    at: before && mine ? before.layout.at : now,
  };
}

const defaultServiceType = ({ network }: ClusterFacts): GatewayServiceType =>
  network?.loadBalancer === true ? 'LoadBalancer' : 'NodePort';

interface EndInput {
  readonly side: LinkInput['consumer'];
  readonly report: EndReport;
  /** What this side's gateway is. */
  readonly kind: 'GatewayServer' | 'GatewayClient';
  /** It was that before, too. */
  readonly same: boolean;
  readonly now: number;
}

function nextEnd(before: LinkEnd | undefined, { side, report, kind, same, now }: EndInput): LinkEnd {
  const known = side.facts.network;
  const ranges = known ? { pod: known.podCidrs, external: known.externalCidrs } : before?.ranges;
  const key = report.key ?? before?.key;
  const reported = report.gatewayKind === kind ? candidatesOf(kind, report.candidates, side.publicAddresses) : [];
  const connection = nextConnection(before?.connection, report.connection, now);
  return {
    ...(ranges ? { ranges } : {}),
    ...(key === undefined ? {} : { key }),
    candidates: reported.length > 0 ? reported : same ? (before?.candidates ?? []) : [],
    ...(connection ? { connection } : {}),
  };
}

/** A gateway that is gone takes its connection with it; only what was never heard of is left as it was. */
function nextConnection(
  before: LinkEnd['connection'],
  report: ConnectionReport | undefined,
  now: number,
): LinkEnd['connection'] {
  if (!report) return before && { value: 'Unknown', reportedAt: before.value === 'Unknown' ? before.reportedAt : now };
  const { reportedAt = now, ...old } = before ?? { value: undefined };
  return sameJson(old, report) ? { ...report, reportedAt } : { ...report, reportedAt: now };
}

/**
 * The agent's own address as the broker sees it may be the gateway's, too: of a cluster behind one NAT it is. Tried last. One that is dialled
 * says its port; one that dials may have kept its own through the NAT.
 */
function candidatesOf(
  kind: EndInput['kind'],
  candidates: readonly string[],
  publicAddresses: readonly string[] = [],
): readonly string[] {
  const told = [...new Set(candidates.map((candidate) => candidate.slice(candidate.lastIndexOf(':') + 1)))];
  const ports = told.length > 0 || kind === 'GatewayServer' ? told : [String(networkPort.wireGuard)];
  const more = publicAddresses.filter(isDialable).flatMap((address) => ports.map((port) => `${address}:${port}`));
  return [...new Set([...candidates, ...more])].slice(0, maxCandidates);
}

const isDialable = (address: string): boolean =>
  parseAddress(address) !== undefined && rangeProblem(`${address}/32`) === undefined;

const maxCandidates = 16;

/** Both sides say that packets cross. */
export const isLinked = (link: Link): boolean =>
  [link.consumer, link.provider].every(({ connection }) => connection?.value === 'Connected');
