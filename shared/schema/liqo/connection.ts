/** networking.liqo.io Connection: how the link to one peer is doing. Tenant namespace, named like the gateway's pods. */
import * as z from 'zod';
import type { KubeResource } from '#shared/domain/kube-object.ts';
import { Cidr } from '../definition/addresses.ts';
import { Conditions, ObjectReference, Timestamp } from '../definition/fields.ts';
import { ageColumn, defineKind } from '../definition/kind.ts';
import { networkNames } from './network-names.ts';

export const ConnectionType = z.enum(['Server', 'Client']);
export type ConnectionType = z.infer<typeof ConnectionType>;

/** Values of `status.value`; the API server takes any text, as with Liqo. */
const connectionValues = ['Connected', 'Connecting', 'Error'] as const;

const ConnectionSpec = z.object({
  type: ConnectionType.describe('Which end this is.'),
  gatewayRef: ObjectReference.describe('The WgGatewayServer or WgGatewayClient.'),
});
type ConnectionSpec = z.infer<typeof ConnectionSpec>;

const AnnouncedRanges = z.object({ pod: z.array(Cidr), external: z.array(Cidr) });

const ConnectionStatus = z.object({
  value: z
    .string()
    .optional()
    .describe(`${connectionValues.join(', ')}.`),
  latency: z
    .object({
      value: z.string().optional().describe('Round trip: `12ms`, below one millisecond `250μs`; `N/A` when unknown.'),
      timestamp: Timestamp.optional(),
    })
    .optional(),
  mtu: z.int().optional().describe('Found on the path, in bytes. Isthmus only, as are all fields below.'),
  peerEndpoint: z.string().optional().describe('`address:port` from which the peer sends.'),
  lastHandshakeTime: Timestamp.optional(),
  packetLoss: z.int().min(0).max(100).optional().describe('Of the recent pings, in percent.'),
  receivedBytes: z.int().min(0).optional().describe('By the tunnel, since its device was made.'),
  sentBytes: z.int().min(0).optional(),
  peerRanges: AnnouncedRanges.optional().describe('What the peer says that its ranges are.'),
  conditions: Conditions.optional(),
});
type ConnectionStatus = z.infer<typeof ConnectionStatus>;

export type Connection = KubeResource<ConnectionSpec, ConnectionStatus>;

export const connections = defineKind<Connection>({
  ...networkNames.connections,
  shortNames: ['conn'],
  categories: ['liqo'],
  description: 'How the link to one peer is doing.',
  writers: {
    object: 'gateway controller',
    status: 'node process on the node of the active gateway pod; its condition: connection controller',
  },
  columns: [
    { name: 'Type', type: 'string', jsonPath: '.spec.type' },
    { name: 'Status', type: 'string', jsonPath: '.status.value' },
    ageColumn,
    { name: 'Latency', type: 'string', jsonPath: '.status.latency.value', priority: 1 },
    { name: 'MTU', type: 'integer', jsonPath: '.status.mtu', priority: 1 },
    { name: 'Peer Endpoint', type: 'string', jsonPath: '.status.peerEndpoint', priority: 1 },
  ],
  spec: ConnectionSpec,
  status: ConnectionStatus,
});
