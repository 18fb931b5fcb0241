/** Codes of peerings: how they come about, across tenants too, and what is done over them. Part of `codes.ts`. */
import type { CodeFacts } from './code-facts.ts';

export const peeringCodes = {
  peer_self: {
    http: 409,
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
  network_test_failed: {
    http: 502,
    retry: true,
    exit: 7,
    cause: 'a probe between two peered clusters was not answered as it should be',
    remedy: 'the table says at which hop packets end; docs/network.md says what to do about each',
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
} as const satisfies Record<string, CodeFacts>;
