/** Events as the outside world sees them: CloudEvents 1.0 with versioned type names, alike in the feed and wherever they are sent. */
import type { NewEvent } from '../ports/store.ts';
import { type EventType, eventTypes, isPublic } from './types.ts';

export interface CloudEvent {
  readonly specversion: '1.0';
  readonly id: string;
  readonly source: string;
  readonly type: string;
  readonly subject: string;
  readonly time: string;
  readonly datacontenttype: 'application/json';
  readonly data: Readonly<Record<string, unknown>>;
}

/** Sent by a test to one webhook or event target, and never in a feed. */
export const testType = 'webhook.test';
export type PublicType = { [T in EventType]: (typeof eventTypes)[T]['public'] extends true ? T : never }[EventType];
export type DeliveredType = PublicType | typeof testType;

export const typePrefix = 'dev.isthmus.';
/** Types whose data changed in a way that readers could not bear, with their number; all others are at 1. */
const versions: Readonly<Partial<Record<DeliveredType, number>>> = {};

export const typeName = (type: string): string =>
  `${typePrefix}${type}.v${Object.hasOwn(versions, type) ? versions[type as DeliveredType] : 1}`;

export const publicTypes = Object.keys(eventTypes).filter(isPublic) as readonly PublicType[];

/** Times are numbers inside and RFC 3339 outside. */
const presented = (name: string, value: unknown): unknown =>
  typeof value === 'number' && /^at$|At$/.test(name) ? new Date(value).toISOString() : value;

export const cloudEventOf = (
  { id, stream, type, subject, at, data }: NewEvent,
  broker: { readonly url: string },
): CloudEvent => ({
  specversion: '1.0',
  id,
  source: `${broker.url}/tenants/${stream}`,
  type: typeName(type),
  subject,
  time: new Date(at).toISOString(),
  datacontenttype: 'application/json',
  data: Object.fromEntries(Object.entries(data).map(([name, value]) => [name, presented(name, value)])),
});
