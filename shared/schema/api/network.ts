/** The link of a peering as the REST API asks for it and shows it. */
import * as z from 'zod';
import { Mtu } from '../definition/addresses.ts';
import { ClusterId } from '../protocol/agent-protocol.ts';

const Time = z.iso.datetime().describe('RFC 3339, UTC.');
const Side = z.enum(['consumer', 'provider']);
export const gatewayServiceTypes = ['LoadBalancer', 'NodePort', 'ClusterIP'] as const;
export const GatewayServiceType = z.enum(gatewayServiceTypes);
export type GatewayServiceType = z.infer<typeof GatewayServiceType>;

/** What is left out stays as it is; of a new peering, is the default. */
const AskedPeeringNetwork = z.strictObject({
  enabled: z
    .boolean()
    .optional()
    .describe(
      'Whether pods of the two clusters reach each other. Default: when both agents can and both policies allow it.',
    ),
  gatewayLocation: Side.optional().describe('The side that is dialled. Default: provider.'),
  mtu: Mtu.optional().describe('Of the tunnel, at most; what the path lets through is measured. Default: 1340.'),
  serviceType: GatewayServiceType.optional().describe(
    'How the dialled gateway is exposed. Default: LoadBalancer where those are known to work, otherwise NodePort.',
  ),
  inBand: z
    .boolean()
    .optional()
    .describe("Whether the provider's API server is reached through the link. Default: false."),
});

/** Said to clients as well, so that what they find valid is. */
const inBandNeedsLink = {
  not: { properties: { enabled: { const: false }, inBand: { const: true } }, required: ['enabled', 'inBand'] },
};
export const NewPeeringNetwork = AskedPeeringNetwork.refine(({ enabled, inBand }) => enabled !== false || !inBand, {
  path: ['inBand'],
  message: 'accepted is false without a network: the API server is reached through the link',
}).meta(inBandNeedsLink);
export type NewPeeringNetwork = z.infer<typeof NewPeeringNetwork>;

export const LinkEnd = z.object({
  status: z.enum(['Connected', 'Connecting', 'Error', 'Unknown']).describe('As this side sees it.'),
  peerEndpoint: z.string().optional().describe('`address:port` from which the other side sends.'),
  latency: z.string().optional().describe('Round trip, for example `12ms`.'),
  handshakeAgeSeconds: z.int().min(0).optional().describe('Of the last key exchange, when it was reported.'),
  mtu: z.int().optional().describe('Found on the path, in bytes.'),
  packetLoss: z.int().optional().describe('Of the recent probes, in percent.'),
  throughput: z
    .object({ received: z.int().min(0), sent: z.int().min(0) })
    .optional()
    .describe(
      'Bytes per second through the tunnel in the last whole minute that was reported; reports come every five minutes while nothing else changes.',
    ),
  reportedAt: Time.optional(),
});
export type LinkEnd = z.infer<typeof LinkEnd>;

const PeeringLink = z.object({
  server: ClusterId.describe('The cluster that is dialled.'),
  endpoint: z.string().optional().describe('Where the other one dials it, `address:port`.'),
  serviceType: GatewayServiceType,
  mtu: z.int().describe('Asked for.'),
  consumer: LinkEnd,
  provider: LinkEnd,
});

export const PeeringNetwork = z.object({
  enabled: z.boolean(),
  gatewayLocation: Side.describe(
    'As asked for; a pair that is peered both ways has one link, and the first peering decides.',
  ),
  mtu: z.int(),
  serviceType: GatewayServiceType.optional(),
  inBand: z.boolean(),
  link: PeeringLink.optional().describe('Absent: none yet, or none any more.'),
});
export type PeeringNetwork = z.infer<typeof PeeringNetwork>;

const perSecond = z.int().min(0).optional();

/** A step of a series. What was not measured in it is absent. */
const SamplePoint = z.object({
  at: Time.describe('When the step begins. By the clock of the cluster.'),
  rttMs: z.number().min(0).optional().describe('Mean of the round trips.'),
  packetLoss: z.int().min(0).max(100).optional().describe('The highest of the probes, in percent.'),
  received: perSecond.describe('Bytes per second that came through the tunnel.'),
  sent: perSecond.describe('Bytes per second that went into it.'),
  cpuGranted: z.number().min(0).optional().describe('Cores. Known to the provider, as the next three.'),
  cpuUsed: z.number().min(0).optional(),
  memoryGranted: z.int().min(0).optional().describe('Bytes.'),
  memoryUsed: z.int().min(0).optional(),
});
export type SamplePoint = z.infer<typeof SamplePoint>;

const Series = z.array(SamplePoint).describe('Ordered by time; a step in which nothing was measured is left out.');

export const SampleSpan = z.enum(['hour', 'day']);

export const PeeringSeries = z.object({
  from: Time,
  to: Time,
  stepSeconds: z.int().describe('60 in an hour, 900 in a day.'),
  consumer: Series.optional().describe('As this end measured it. Absent: it is of another tenant.'),
  provider: Series.optional(),
});
export type PeeringSeries = z.infer<typeof PeeringSeries>;
