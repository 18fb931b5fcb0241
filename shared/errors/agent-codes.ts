/** Codes of what an agent proves itself by: join tokens, the key of its cluster, signed requests. Part of `codes.ts`. */
import type { CodeFacts } from './code-facts.ts';

export const agentCodes = {
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
  cluster_key_known: {
    http: 409,
    retry: false,
    exit: 3,
    cause: 'a cluster of this name has joined with another key, and the request brings no proof of that key',
    remedy:
      'choose another name; if it is the same cluster and its key is lost, an administrator of the tenant runs `isthmus join NAME --replace-key`',
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
} as const satisfies Record<string, CodeFacts>;
