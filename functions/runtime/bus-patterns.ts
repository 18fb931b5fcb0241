/**
 * Which events start which function, as data: infrastructure makes rules of it, the local bus and the tests match with it. Events only say
 * "look again"; what matters is that no event that the coordination needs matches none.
 */
import { publicTypes } from '#control/events/cloud-event.ts';
import { peeringTypes } from '#control/events/peering-trigger.ts';
import type { EventType } from '#control/events/types.ts';

/** `source` of everything that this broker publishes. */
export const eventSource = 'isthmus';

type Pattern = Readonly<Record<string, unknown>> & { readonly 'detail-type': readonly EventType[] };

const anyOf = (...types: readonly EventType[]): Pattern => ({ source: [eventSource], 'detail-type': types });

export const patterns = {
  /** What the request path looked at already, unless its process died, and what other clusters wait for (docs/adr/0022-the-request-path-decides.md). */
  peerings: anyOf(...peeringTypes),
  clusterLeft: anyOf('cluster.left'),
  /** What tenants may be told, and what they asked to be sent now. */
  webhooks: anyOf(...publicTypes, 'webhook.due'),
} as const satisfies Record<string, Pattern>;

/** Of the table's stream: events just committed, and nothing else. */
export const outboxInsertions = {
  eventName: ['INSERT'],
  dynamodb: { NewImage: { kind: { S: ['event'] } } },
} as const;
