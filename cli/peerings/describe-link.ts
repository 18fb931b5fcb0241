/** The link of a peering, as text. Pure. */
import { age } from '#cli/output/duration.ts';
import { type Paint, toneOf } from '#cli/output/style.ts';
import type { LinkEnd } from '#shared/schema/api/network.ts';
import type { Peering } from '#shared/schema/api/resources.ts';

export function networkText({ network }: Peering): string {
  if (!network?.enabled) return 'none';
  const { link, inBand } = network;
  const route = inBand ? '; API server through the link' : '';
  if (!link) return `wanted, at most ${network.mtu} bytes${route}`;
  return `${link.server} is dialled${link.endpoint ? ` at ${link.endpoint}` : ''} (${link.serviceType})${route}`;
}

function measured({ latency, mtu, packetLoss, handshakeAgeSeconds: handshake }: LinkEnd, requested: number): string[] {
  return [
    ...(latency === undefined ? [] : [`latency ${latency}`]),
    ...(packetLoss ? [`${packetLoss} % lost`] : []),
    ...(handshake === undefined ? [] : [`handshake ${age(0, handshake * 1_000)} old`]),
    ...(mtu === undefined ? [] : [mtu === requested ? `MTU ${mtu}` : `MTU ${mtu} of ${requested}`]),
  ];
}

function endLine(cluster: string, peer: string, end: LinkEnd, { asked: requested, paint, now }: Frame): string {
  const at = end.peerEndpoint === undefined ? '' : ` to ${peer} at ${end.peerEndpoint}`;
  const facts = measured(end, requested).join(', ');
  const reported = end.reportedAt === undefined ? '' : paint('faint', ` (${age(Date.parse(end.reportedAt), now)} ago)`);
  const [status, tone] = end.status === 'Connected' ? ['Connected', 'Ready'] : [end.status, 'Degraded'];
  return `  ${cluster.padEnd(16)} ${paint(toneOf(tone), status)}${at}${facts ? `: ${facts}` : ''}${reported}`;
}

interface Frame {
  /** MTU that was asked for. */
  readonly asked: number;
  readonly paint: Paint;
  readonly now: number;
}

/** Both ends, each as its own cluster sees it. */
export function linkLines({ network, consumer, provider }: Peering, paint: Paint, now: number): string[] {
  const link = network?.link;
  if (!link) return [];
  const frame = { asked: link.mtu, paint, now };
  return [
    '',
    'Link:',
    endLine(consumer, provider, link.consumer, frame),
    endLine(provider, consumer, link.provider, frame),
  ];
}
