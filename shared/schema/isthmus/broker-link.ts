/** isthmus.dev BrokerLink: where this cluster is enrolled. */
import * as z from 'zod';
import type { KubeResource } from '#shared/domain/kube-object.ts';
import { ClusterId, Conditions, Timestamp } from '../definition/fields.ts';
import { ageColumn, defineKind, immutable } from '../definition/kind.ts';

const BrokerLinkSpec = z.object({
  url: z
    .string()
    .regex(/^https?:\/\/[^ ]+$/)
    .describe('Where the broker answers.'),
  tenant: z.string().min(1).describe('The account at the broker that this cluster belongs to.'),
  clusterId: ClusterId.meta(immutable('clusterId')).describe('What the broker and all peers call this cluster.'),
  caHash: z
    .string()
    .regex(/^[0-9a-f]{64}$/)
    .optional()
    .describe("Hex SHA-256 of the broker's CA certificate (DER); absent when its certificate is publicly trusted."),
  caBundle: z.string().optional().describe("PEM bundle that the broker's certificate must be signed by."),
});
type BrokerLinkSpec = z.infer<typeof BrokerLinkSpec>;

const BrokerLinkStatus = z.object({
  connected: z.boolean().optional().describe('The doorbell (WebSocket) is open.'),
  lastExchangeTime: Timestamp.optional().describe('When the broker last answered.'),
  protocolVersion: z.int().min(1).optional().describe('Spoken by both sides.'),
  agentVersion: z.string().optional().describe('Version of the agent as the broker knows it.'),
  observedGeneration: z.int().optional(),
  conditions: Conditions.optional(),
});
type BrokerLinkStatus = z.infer<typeof BrokerLinkStatus>;

export type BrokerLink = KubeResource<BrokerLinkSpec, BrokerLinkStatus>;

export const brokerLinks = defineKind<BrokerLink>({
  group: 'isthmus.dev',
  version: 'v1alpha1',
  kind: 'BrokerLink',
  plural: 'brokerlinks',
  namespaced: false,
  shortNames: ['bl'],
  categories: ['isthmus'],
  description: 'Where this cluster is enrolled.',
  writers: { object: '`isthmus join`', status: 'channel of the agent' },
  columns: [
    { name: 'URL', type: 'string', jsonPath: '.spec.url' },
    { name: 'ClusterID', type: 'string', jsonPath: '.spec.clusterId' },
    { name: 'Connected', type: 'boolean', jsonPath: '.status.connected' },
    { name: 'LastExchange', type: 'date', jsonPath: '.status.lastExchangeTime' },
    { name: 'Tenant', type: 'string', jsonPath: '.spec.tenant', priority: 1 },
    ageColumn,
  ],
  spec: BrokerLinkSpec,
  status: BrokerLinkStatus,
});
