/**
 * Every error that leaves a module has one of these codes. Columns: HTTP status, whether a retry can help, the CLI's exit code,
 * and, for the documentation page that `npm run gen` writes, cause and remedy. Keep sorted by prefix.
 */
export interface CodeFacts {
  readonly http: number;
  readonly retry: boolean;
  readonly exit: number;
  readonly cause: string;
  readonly remedy: string;
}

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
  cursor_unknown: {
    http: 404,
    retry: false,
    exit: 2,
    cause: 'the cursor is not one that this list handed out',
    remedy: 'read the list from its beginning, without a cursor',
  },
  join_token_unknown: {
    http: 401,
    retry: false,
    exit: 3,
    cause: 'the join token was never issued by this broker',
    remedy: 'run `isthmus join` again; it makes a new token',
  },
  join_token_used: {
    http: 401,
    retry: false,
    exit: 3,
    cause: 'a join token works once and this one was used',
    remedy: 'run `isthmus join` again; it makes a new token',
  },
  join_token_expired: {
    http: 401,
    retry: false,
    exit: 3,
    cause: 'a join token lives 15 minutes',
    remedy: 'run `isthmus join` again; it makes a new token',
  },
  signature_invalid: {
    http: 401,
    retry: false,
    exit: 3,
    cause: 'the agent request is not signed by the key that the cluster enrolled',
    remedy: 're-enrol the cluster with `isthmus join`',
  },
  protocol_unsupported: {
    http: 400,
    retry: false,
    exit: 1,
    cause: 'agent and broker are more than two protocol versions apart',
    remedy: 'upgrade the older of the two; the message says which',
  },
  request_replayed: {
    http: 401,
    retry: false,
    exit: 3,
    cause: 'this signed request was seen before',
    remedy: 'sign a new request with a fresh jti',
  },
  request_expired: {
    http: 401,
    retry: true,
    exit: 3,
    cause: 'the signed request is older than 60 seconds or from the future',
    remedy: 'check the clocks of both machines',
  },

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
    cause: 'somebody else changed the object meanwhile',
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
  webhook_disabled: {
    http: 409,
    retry: false,
    exit: 5,
    cause: 'the webhook is disabled: somebody switched it off, or it failed for days',
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

  // peering
  peer_self: {
    http: 422,
    retry: false,
    exit: 2,
    cause: 'consumer and provider are the same cluster',
    remedy: 'name two different clusters',
  },
  cluster_unknown: {
    http: 404,
    retry: false,
    exit: 4,
    cause: 'no cluster of this name has joined',
    remedy: 'list them with `isthmus get clusters`',
  },
  policy_refused: {
    http: 422,
    retry: false,
    exit: 6,
    cause: 'the PeeringPolicy of a cluster does not allow this',
    remedy: 'ask for less, or change that PeeringPolicy',
  },
  cluster_id_taken: {
    http: 409,
    retry: false,
    exit: 5,
    cause: 'a cluster would have two peers of the same name',
    remedy: 'join one of the two clusters under another name, or unpeer the one that has the name',
  },
  consent_exceeded: {
    http: 422,
    retry: false,
    exit: 6,
    cause: 'more is asked for than the other tenant agreed to',
    remedy: 'ask for what the message names, or ask that tenant for a wider invitation',
  },
  invitation_unknown: {
    http: 404,
    retry: false,
    exit: 4,
    cause: 'no invitation has this code',
    remedy: 'copy the whole code as it was printed, or ask for a new one',
  },
  invitation_closed: {
    http: 409,
    retry: false,
    exit: 6,
    cause: 'the invitation has expired, was revoked, or was used as often as it may be',
    remedy: 'ask the tenant that made it for a new one',
  },
  request_closed: {
    http: 409,
    retry: false,
    exit: 5,
    cause: 'the request was decided, withdrawn, or has expired',
    remedy: 'look at it with `isthmus requests list`; the asking tenant may ask again',
  },
  peering_failed: {
    http: 409,
    retry: false,
    exit: 6,
    cause: 'the peering cannot come about as things are',
    remedy: 'look at both ends with `isthmus describe peering CONSUMER PROVIDER`',
  },
  namespace_reserved: {
    http: 422,
    retry: false,
    exit: 2,
    cause: 'system namespaces cannot be offloaded',
    remedy: 'choose a namespace of your own',
  },
  namespace_unknown: {
    http: 404,
    retry: false,
    exit: 4,
    cause: 'there is no such namespace in the cluster',
    remedy: 'create it, or correct the name',
  },

  // admission
  namespace_not_offloaded: {
    http: 409,
    retry: true,
    exit: 5,
    cause: 'the namespace is labelled for offloading, but has no NamespaceOffloading named offloading',
    remedy: 'create it with `isthmus offload namespace`, or remove the label liqo.io/scheduling-enabled',
  },
  quota_missing: {
    http: 403,
    retry: false,
    exit: 6,
    cause: 'the provider keeps no Quota for the user that creates the pod',
    remedy: 'wait until the ResourceSlice is accepted, and use the credentials of that slice',
  },
  quota_cordoned: {
    http: 403,
    retry: false,
    exit: 6,
    cause: 'the provider takes no new pods of this slice or tenant for now',
    remedy: 'ask the provider to uncordon it; running pods stay',
  },
  quota_exceeded: {
    http: 403,
    retry: false,
    exit: 6,
    cause: 'the pod asks for more than is left of what the provider granted',
    remedy: 'ask for more with `isthmus peer`, or lower the requests that the message names',
  },
  sandbox_refused: {
    http: 403,
    retry: false,
    exit: 6,
    cause: 'the pod asks for rights on the provider node that a guest does not get',
    remedy: 'remove the field that the message names from the pod',
  },

  // Kubernetes API
  kube_unreachable: {
    http: 503,
    retry: true,
    exit: 7,
    cause: 'the Kubernetes API server did not answer',
    remedy: 'check the server URL in the kubeconfig and that the API server runs',
  },
  kube_unauthorized: {
    http: 502,
    retry: false,
    exit: 3,
    cause: 'the Kubernetes API server refused the credentials',
    remedy: 'renew the kubeconfig',
  },
  kube_forbidden: {
    http: 502,
    retry: false,
    exit: 3,
    cause: 'the credentials have no right for this on that cluster',
    remedy: 'grant the right that the message names',
  },
  kube_not_found: {
    http: 502,
    retry: false,
    exit: 4,
    cause: 'the object does not exist on that cluster',
    remedy: 'check kind, namespace and name',
  },
  kube_already_exists: {
    http: 502,
    retry: false,
    exit: 5,
    cause: 'the object exists already on that cluster',
    remedy: 'update it instead',
  },
  kube_conflict: {
    http: 502,
    retry: true,
    exit: 5,
    cause: 'the object changed meanwhile, or another manager owns the field',
    remedy: 'read it again and repeat',
  },
  kube_invalid: {
    http: 502,
    retry: false,
    exit: 2,
    cause: 'the API server or an admission webhook refused the object',
    remedy: 'correct the field that the message names',
  },
  kube_gone: {
    http: 502,
    retry: true,
    exit: 7,
    cause: 'the requested resource version is too old',
    remedy: 'list again',
  },
  kube_throttled: {
    http: 503,
    retry: true,
    exit: 7,
    cause: 'the API server asked to slow down',
    remedy: 'wait and retry',
  },
  kube_failed: {
    http: 502,
    retry: true,
    exit: 7,
    cause: 'the API server answered with an unexpected status',
    remedy: 'look at the message and the API server log',
  },

  // broker and waiting
  broker_unreachable: {
    http: 503,
    retry: true,
    exit: 7,
    cause: 'the broker did not answer',
    remedy: 'check the URL and that the broker runs',
  },
  limit_reached: {
    http: 429,
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
