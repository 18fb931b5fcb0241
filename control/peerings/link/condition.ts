/** What a link still lacks: on which side, and what to do about it. */
import type { PeeringRole } from '#shared/schema/protocol/agent-protocol.ts';
import type { Link } from '../../model/link.ts';
import type { PeeringSpec, SideInput } from '../../model/peering-records.ts';
import { type Condition, holds, lacks } from '../core/condition.ts';
import { isPlainEndpoint } from '../core/endpoint.ts';
import { otherRole } from '../core/roles.ts';
import { canLink } from '../terms/network-terms.ts';
import { isLinked } from './decide.ts';
import type { EndReport } from './reports.ts';

interface LinkView {
  readonly spec: PeeringSpec;
  readonly link: Link;
  readonly reports: Readonly<Record<PeeringRole, EndReport>>;
  readonly consumer: Pick<SideInput, 'facts'>;
  readonly provider: Pick<SideInput, 'facts'>;
  /** It was up once. */
  readonly wasUp: boolean;
}

const sides = ['provider', 'consumer'] as const;
const not = (side: PeeringRole, reason: string, message: string, action = ''): Condition =>
  lacks('NetworkReady', side, reason, message, action);

/** The first thing missing, in the order in which things come about. */
export function networkCondition(view: LinkView): Condition {
  const { spec, link } = view;
  if (isLinked(link))
    return holds('NetworkReady', 'both', `${spec.consumer} and ${spec.provider} are linked`, 'Linked');
  return (
    firstOf((side) => rangesOf(view, side)) ??
    firstOf((side) => configurationOf(view, side)) ??
    gatewaysOf(view) ??
    firstOf((side) => keyOf(view, side)) ??
    firstOf((side) => connectionOf(view, side)) ??
    not('consumer', 'Connecting', `${spec.consumer} and ${spec.provider} are not linked yet`)
  );
}

function firstOf(look: (side: PeeringRole) => Condition | undefined): Condition | undefined {
  for (const side of sides) {
    const found = look(side);
    if (found) return found;
  }
  return undefined;
}

function rangesOf(view: LinkView, side: PeeringRole): Condition | undefined {
  const id = view.spec[side];
  if (!canLink(view[side].facts))
    return not(
      side,
      'NotCapable',
      `the agent of ${id} makes no links`,
      `upgrade the agent of ${id}, or use --no-network`,
    );
  const { ranges } = view.link[side];
  if (ranges && ranges.pod.length > 0 && ranges.external.length > 0) return undefined;
  return not(
    side,
    'WaitingForRanges',
    `${id} has not told its ${ranges && ranges.pod.length > 0 ? 'external' : 'pod'} ranges yet`,
    `if this lasts, look at the Networks in namespace liqo of ${id}`,
  );
}

function configurationOf({ spec, reports }: LinkView, side: PeeringRole): Condition | undefined {
  const { isConfigured, configuration } = reports[side];
  if (isConfigured) return undefined;
  const peer = spec[otherRole(side)];
  const why = configuration?.message || configuration?.reason;
  return not(
    side,
    'WaitingForConfiguration',
    `${spec[side]} has no ranges for ${peer} yet${why ? `: ${why}` : ''}`,
    `if this lasts, look at Configuration ${peer} in ${spec[side]}`,
  );
}

function gatewaysOf({ spec, link, reports }: LinkView): Condition | undefined {
  const serving = link.layout.server === spec.consumer ? 'consumer' : 'provider';
  if (link[serving].candidates.length > 0) return undefined;
  const why = reports[serving].gateway?.message;
  const peer = spec[otherRole(serving)];
  return not(
    serving,
    'WaitingForEndpoint',
    `the gateway of ${spec[serving]} cannot be reached from outside yet${why ? `: ${why}` : ''}`,
    link.layout.serviceType === 'LoadBalancer'
      ? `check that ${spec[serving]} gives addresses to Services of type LoadBalancer, or use --gateway-service-type NodePort`
      : `if this lasts, look at GatewayServer ${peer} in ${spec[serving]}`,
  );
}

function keyOf({ spec, link, reports }: LinkView, side: PeeringRole): Condition | undefined {
  if (link[side].key !== undefined) return undefined;
  const peer = spec[otherRole(side)];
  const kind = link.layout.server === spec[side] ? 'GatewayServer' : 'GatewayClient';
  const why = reports[side].gateway?.message;
  return not(
    side,
    'WaitingForKey',
    `the gateway of ${spec[side]} has no key yet${why ? `: ${why}` : ''}`,
    `if this lasts, look at ${kind} ${peer} in ${spec[side]}`,
  );
}

function connectionOf({ spec, link, wasUp }: LinkView, side: PeeringRole): Condition | undefined {
  const value = link[side].connection?.value;
  if (value === 'Connected') return undefined;
  const peer = spec[otherRole(side)];
  // Names of another tenant's hosts are its own.
  const { candidates: all } = link[otherRole(side)];
  const candidates = spec.across ? all.filter(isPlainEndpoint) : all;
  const where = candidates.length > 0 ? ` at ${candidates.join(', ')}` : '';
  const down = wasUp || value === 'Error';
  return not(
    side,
    down ? 'LinkDown' : 'Connecting',
    `${spec[side]} ${down ? 'hears nothing from' : 'has not reached'} ${peer}${where}${down ? '' : ' yet'}`,
    down
      ? `check that UDP gets from ${spec[side]} to ${peer}${where}, or that ${link.layout.server} can be dialled`
      : `if this lasts, check that UDP gets to ${link.layout.server}, or dial the other side: --gateway-location`,
  );
}
