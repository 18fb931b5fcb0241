/**
 * Which events start which function, as data: infrastructure makes rules of it, the local bus and the tests match with it. Events only say
 * "look again", hence the patterns may overlap; what matters is that no event that the coordination needs matches none.
 */
import { publicTypes } from '#control/events/cloud-event.ts';
import type { EventType } from '#control/events/types.ts';

/** `source` of everything that this broker publishes. */
export const eventSource = 'isthmus';

type Pattern = Readonly<Record<string, unknown>> & { readonly 'detail-type': readonly EventType[] };

/** An agent reported a change of one of these kinds. */
const observedKinds = (...kinds: readonly string[]): Pattern => ({
  source: [eventSource],
  'detail-type': ['cluster.observed'],
  detail: { data: { kinds } },
});

const anyOf = (...types: readonly EventType[]): Pattern => ({ source: [eventSource], 'detail-type': types });

export const authenticationKinds = ['Namespace', 'Secret', 'Tenant', 'Identity'] as const;
export const negotiationKinds = ['ResourceSlice', 'Quota', 'VirtualNode', 'Node'] as const;
export const networkKinds = [
  'Configuration',
  'Connection',
  'GatewayClient',
  'GatewayServer',
  'IP',
  'Network',
  'PublicKey',
] as const;
const knownKinds = [...authenticationKinds, ...negotiationKinds, ...networkKinds];

export const patterns = {
  /** The consumer signed, the provider issued, the identity arrived. */
  authentication: observedKinds(...authenticationKinds),
  /** Capacity was granted or refused, the virtual node changed. */
  negotiation: observedKinds(...negotiationKinds),
  /** A gateway, a key or the link changed. */
  network: observedKinds(...networkKinds),
  /** A peering was requested or ended, or a cluster joined, changed or left. */
  peering: anyOf(
    'cluster.joined',
    'cluster.left',
    'cluster.facts-changed',
    'peering.requested',
    'peering.changed',
    'peering.unpeer-requested',
    'invitation.revoked',
  ),
  /** A report in which no object of a known kind changed: a set was applied, refused or is gone. */
  applied: {
    source: [eventSource],
    'detail-type': ['cluster.observed'],
    detail: { data: { kinds: [{ exists: false }, { 'anything-but': knownKinds }] } },
  },
  clusterLeft: anyOf('cluster.left'),
  /** What tenants may be told, and what they asked to be sent now. */
  webhooks: anyOf(...publicTypes, 'webhook.due'),
} as const satisfies Record<string, Pattern>;

/** Of the table's stream: events just committed, and nothing else. */
export const outboxInsertions = {
  eventName: ['INSERT'],
  dynamodb: { NewImage: { kind: { S: ['event'] } } },
} as const;
