/** `isthmus status` as text. Pure. */

import { table } from '#cli/output/table.ts';
import { ownMember } from '#shared/domain/own-member.ts';
import { openAt, type PeeringEnds } from './both-ends.ts';
import type { ClusterStatus, PeerStatus } from './summary.ts';

const amounts = (resources: Readonly<Record<string, string>>): string =>
  Object.entries(resources)
    .map(([name, amount]) => `${name} ${amount}`)
    .join(', ');

function linkText({ link }: PeerStatus): string {
  if (link === undefined) return '';
  const { value, roundTrip, lossPercent } = link;
  return [value, roundTrip, ...(lossPercent === undefined ? [] : [`${lossPercent} % lost`])].filter(Boolean).join(', ');
}

/** The worst of each module. */
const moduleText = ({ modules }: PeerStatus, which: string): string => {
  const states = modules.filter(({ module }) => module === which).map(({ status }) => status);
  return states.find((state) => state !== 'Established' && state !== 'Ready') ?? states[0] ?? '';
};

const endText = (ends: PeeringEnds, cluster: string): string => {
  const open = openAt(ends, cluster).map(({ type }) => type);
  const link = ownMember(ends.link, cluster);
  const linked =
    link === undefined ? '' : `, link ${link.status}${link.latency === undefined ? '' : ` ${link.latency}`}`;
  return `${open.length === 0 ? 'well' : `not ${open.join(', ')}`}${linked}`;
};

/** What does not hold at each end, in the words of the broker. */
const openLines = (ends: PeeringEnds): readonly string[] =>
  openAt(ends).map(
    ({ end, type, message, action }) =>
      `${ends.consumer} -> ${ends.provider}, ${end}: ${type}: ${message}${action === '' ? '' : `; to do: ${action}`}\n`,
  );

const peeringsText = (peerings: readonly PeeringEnds[]): string =>
  [
    table(peerings, [
      { head: 'peering', cell: ({ consumer, provider }) => `${consumer} -> ${provider}` },
      { head: 'phase', cell: ({ phase }) => phase },
      { head: 'at the consumer', cell: (one) => endText(one, one.consumer) },
      { head: 'at the provider', cell: (one) => endText(one, one.provider) },
    ]),
    ...peerings.flatMap(openLines),
  ].join('');

export function statusText(status: ClusterStatus): string {
  const { agent, broker, peers, namespaces, ranges, warnings } = status;
  const slices = peers.flatMap(({ id, slices: all }) => all.map((slice) => ({ id, ...slice })));
  const parts = [
    [
      `cluster     ${status.clusterId}, Kubernetes ${status.kubernetes}`,
      `agent       ${agent.image}, ${agent.ready} of ${agent.wanted} ready`,
      `broker      ${broker === undefined ? 'none' : `${broker.url}, ${broker.connected ? 'connected' : 'away'}`}`,
      ...(status.labels === '' ? [] : [`labels      ${status.labels}`]),
      `ranges      ${ranges.length === 0 ? 'no network of ours' : ranges.map(({ name, cidr }) => `${name} ${cidr}`).join(', ')}`,
      '',
    ].join('\n'),
    peers.length === 0
      ? 'no peers\n'
      : table(peers, [
          { head: 'peer', cell: ({ id }) => id },
          { head: 'role', cell: ({ role }) => role },
          { head: 'networking', cell: (peer) => moduleText(peer, 'networking') },
          { head: 'authentication', cell: (peer) => moduleText(peer, 'authentication') },
          { head: 'offloading', cell: (peer) => moduleText(peer, 'offloading') },
          { head: 'link', cell: linkText },
          { head: 'pods', cell: ({ offloadedPods }) => String(offloadedPods) },
        ]),
    ...(status.peerings === undefined || status.peerings.length === 0 ? [] : [peeringsText(status.peerings)]),
    ...(status.noPeerings === undefined ? [] : [`only this end is shown: ${status.noPeerings}\n`]),
    ...(slices.length === 0
      ? []
      : [
          table(slices, [
            { head: 'slice', cell: ({ name }) => name },
            { head: 'peer', cell: ({ id }) => id },
            { head: 'direction', cell: ({ direction }) => direction },
            { head: 'granted', cell: ({ granted }) => amounts(granted) },
            { head: 'used', cell: ({ used }) => (used === undefined ? '' : amounts(used)) },
          ]),
        ]),
    ...(namespaces.length === 0
      ? []
      : [
          table(namespaces, [
            { head: 'namespace', cell: ({ name }) => name },
            { head: 'offloading', cell: ({ phase }) => phase },
            { head: 'pods at providers', cell: ({ pods }) => String(pods) },
          ]),
        ]),
    ...(warnings.length === 0 ? [] : [`${warnings.map((warning) => `warning: ${warning}`).join('\n')}\n`]),
  ];
  return parts.join('\n');
}
