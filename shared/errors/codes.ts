/**
 * Every error that leaves a module has one of these codes. Columns: HTTP status, whether a retry can help, the CLI's exit code,
 * and, for the documentation page that `npm run gen` writes, cause and remedy. Keep sorted by prefix.
 */
import { agentCodes } from './agent-codes.ts';
import { clusterCodes } from './cluster-codes.ts';
import type { CodeFacts } from './code-facts.ts';
import { peeringCodes } from './peering-codes.ts';

export type { CodeFacts };

export const codes = {
  // input
  invalid_input: {
    http: 422,
    retry: false,
    exit: 2,
    cause: 'a field has a value that its schema refuses',
    remedy: 'correct the named field; the message says what is accepted',
  },
  malformed_request: {
    http: 400,
    retry: false,
    exit: 2,
    cause: 'the request is not valid JSON or lacks a required header',
    remedy: 'send application/json with the documented headers',
  },
  too_large: {
    http: 413,
    retry: false,
    exit: 2,
    cause: 'the request or an object in it is larger than the broker keeps',
    remedy: 'send less at once; the message says the limit',
  },
  unsupported_media_type: {
    http: 415,
    retry: false,
    exit: 2,
    cause: 'the body is not sent as JSON',
    remedy: 'send it with the header content-type: application/json',
  },
  headers_too_large: {
    http: 431,
    retry: false,
    exit: 2,
    cause: 'the request line and headers are larger than the broker reads',
    remedy: 'send fewer or shorter headers and a shorter query',
  },
  internal: {
    http: 500,
    retry: true,
    exit: 1,
    cause: 'a defect in Isthmus',
    remedy: 'report it with the request id; retrying may help',
  },

  // identity and rights
  unauthenticated: {
    http: 401,
    retry: false,
    exit: 3,
    cause: 'no valid credentials came with the request',
    remedy: 'log in again with `isthmus login URL --key KEY`',
  },
  forbidden: {
    http: 403,
    retry: false,
    exit: 3,
    cause: 'the credentials lack the role or scope for this',
    remedy: 'use a key with the role that the message names',
  },
  not_found: {
    http: 404,
    retry: false,
    exit: 4,
    cause: 'there is no such object in this tenant',
    remedy: 'check the name with `isthmus get`',
  },
  method_not_allowed: {
    http: 405,
    retry: false,
    exit: 2,
    cause: 'the path exists, but not with this method',
    remedy: 'use one of the methods in the Allow header',
  },
  event_type_unknown: {
    http: 404,
    retry: false,
    exit: 2,
    cause: 'the catalogue of events has no such type or group',
    remedy: 'see docs/events.md for what there is',
  },
  issuer_unusable: {
    http: 409,
    retry: true,
    exit: 7,
    cause: 'the identity provider that is to be registered cannot be asked for its signing keys',
    remedy: 'check the URL, and that the provider is reachable from the broker',
  },
  fields_conflict: {
    http: 409,
    retry: false,
    exit: 2,
    cause: 'each field is valid, but not together with the others',
    remedy: 'change one of the fields that the message names',
  },
  url_refused: {
    http: 403,
    retry: false,
    exit: 2,
    cause: 'the broker does not call this URL',
    remedy: 'give an https URL at a public address, or have the operator allow private ones',
  },
  cursor_unknown: {
    http: 404,
    retry: false,
    exit: 2,
    cause: 'the cursor is not one that this list handed out',
    remedy: 'read the list from its beginning, without a cursor',
  },
  cursor_expired: {
    http: 410,
    retry: false,
    exit: 5,
    cause: 'events after this cursor are older than the event log keeps them, which is 24 hours',
    remedy: 'read what you follow once more, then follow the feed without a cursor',
  },
  ...agentCodes,
  issuer_unreachable: {
    http: 503,
    retry: true,
    exit: 7,
    cause: 'the signing keys of the identity provider could not be fetched',
    remedy: 'check the issuer URL with `isthmus tenant issuer list`, and that it is reachable from the broker',
  },
  tenant_suspended: {
    http: 403,
    retry: false,
    exit: 3,
    cause: 'the operator of the broker suspended the tenant',
    remedy: 'ask the operator of the broker; running peerings are not affected',
  },
  tenant_deleting: {
    http: 409,
    retry: false,
    exit: 5,
    cause: 'the tenant is being deleted',
    remedy: 'nothing can be changed any more; `isthmus tenant show` says what is still to end',
  },

  // state
  version_conflict: {
    http: 409,
    retry: true,
    exit: 5,
    cause: 'another writer changed the object after it was read',
    remedy: 'read it again and repeat',
  },
  already_exists: {
    http: 409,
    retry: false,
    exit: 5,
    cause: 'the name is taken',
    remedy: 'choose another name or use the existing object',
  },
  precondition_failed: {
    http: 412,
    retry: false,
    exit: 5,
    cause: 'If-Match does not match the current ETag',
    remedy: 'read the object again and repeat',
  },
  idempotency_mismatch: {
    http: 409,
    retry: false,
    exit: 5,
    cause: 'the Idempotency-Key was used for a different request',
    remedy: 'use a new key',
  },
  in_progress: {
    http: 409,
    retry: true,
    exit: 5,
    cause: 'an earlier request with this Idempotency-Key is still being worked on',
    remedy: 'wait a moment and repeat the same request',
  },
  in_use: {
    http: 409,
    retry: false,
    exit: 5,
    cause: 'other objects depend on this one',
    remedy: 'remove what the message names first',
  },
  event_target_disabled: {
    http: 409,
    retry: false,
    exit: 5,
    cause: 'the event target is disabled: it was switched off by request, or it failed for days',
    remedy: 'mend the role or the target, then run `isthmus event-target enable ID`',
  },
  event_target_failed: {
    http: 502,
    retry: true,
    exit: 7,
    cause: 'the bus or queue of an event target did not take an event within 10 seconds',
    remedy: 'see `isthmus event-target deliveries ID` for what AWS answered',
  },
  event_targets_unavailable: {
    http: 409,
    retry: false,
    exit: 6,
    cause: 'this broker has no identity at AWS, hence no event targets',
    remedy: 'use a webhook, or ask the operator of the broker to start it with --aws-principal',
  },
  webhook_disabled: {
    http: 409,
    retry: false,
    exit: 5,
    cause: 'the webhook is disabled: it was switched off by request, or it failed for days',
    remedy: 'mend the receiver, then run `isthmus webhook enable ID`',
  },
  webhook_failed: {
    http: 502,
    retry: true,
    exit: 7,
    cause: 'the receiver of a webhook did not answer 2xx within 10 seconds',
    remedy: 'see `isthmus webhook deliveries ID` for what it answered',
  },
  webhooks_unavailable: {
    http: 501,
    retry: false,
    exit: 6,
    cause: 'this broker has no key to keep the secrets of webhooks with, hence no webhooks',
    remedy: 'follow the events with `GET /v1/events`, or ask the operator of the broker',
  },

  ...peeringCodes,
  ...clusterCodes,
  // broker and waiting
  broker_unreachable: {
    http: 503,
    retry: true,
    exit: 7,
    cause: 'the broker did not answer',
    remedy: 'check the URL and that the broker runs',
  },
  limit_reached: {
    http: 409,
    retry: false,
    exit: 6,
    cause: 'the tenant has as many of these as its limit allows',
    remedy: 'remove some, or ask the operator of the broker for more; `isthmus tenant show` lists limits and use',
  },
  store_busy: {
    http: 503,
    retry: true,
    exit: 7,
    cause: 'the database is busy with other changes to the same objects, or throttles',
    remedy: 'repeat the request in a moment; the same Idempotency-Key makes that safe',
  },
  storage_full: {
    http: 507,
    retry: true,
    exit: 7,
    cause: "the disk that holds the broker's database is full",
    remedy:
      'have the operator of the broker make room; the broker goes on by itself, and running peerings are not affected',
  },
  storage_unwritable: {
    http: 503,
    retry: true,
    exit: 7,
    cause: "the broker's database cannot be written or read",
    remedy: 'have the operator look at the log of the broker: rights, mount and health of the disk',
  },
  rate_limited: {
    http: 429,
    retry: true,
    exit: 7,
    cause: 'the tenant sent more requests than its limit',
    remedy: 'wait as long as Retry-After says',
  },
  deadline_exceeded: {
    http: 504,
    retry: true,
    exit: 8,
    cause: 'the wait ended before the condition was met',
    remedy: 'the message says what was waited for; `isthmus describe` shows more',
  },

  // this machine
  host_unsupported: {
    http: 500,
    retry: false,
    exit: 9,
    cause: 'this machine lacks something that the command needs',
    remedy: 'install or provide what the message names',
  },
  command_failed: {
    http: 500,
    retry: false,
    exit: 9,
    cause: 'a program that Isthmus started failed',
    remedy: 'look at the output in the message',
  },
} as const satisfies Record<string, CodeFacts>;

export type ErrorCode = keyof typeof codes;
