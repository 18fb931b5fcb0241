/**
 * The REST API of the broker, typed: written by `npm run gen` from functions/api/openapi.json. It imports nothing: take it along, and give
 * `createBrokerApi` what sends a request (cli/broker/broker-client.ts is an example with retries and problems).
 */

export interface ApprovalRule {
  id: string;
  name: string;
  tenants: string[];
  /** Labels that the published cluster has. */
  labels: Record<string, string>;
  /** A request must name each of these and ask for no more. */
  maxResources: Record<string, string>;
  classes: string[];
  /** How many requests it approves. */
  uses: number;
  /** How many it has approved. */
  used: number;
  /** RFC 3339, UTC. */
  createdAt: string;
  createdBy: string;
}

export interface AuditRecord {
  id: string;
  /** RFC 3339, UTC. */
  at: string;
  /** The actor: `api-key/…`, `cluster/…` or `system`. */
  principal: string;
  /** Network address of the caller. */
  from: string;
  requestId: string;
  action: string;
  subject: string;
  before?: unknown | undefined;
  after?: unknown | undefined;
}

export interface Cluster {
  /** The name peers know a cluster by. */
  name: string;
  state: 'joined' | 'left';
  /** Not missing for three heartbeats, nor for two minutes since its doorbell closed. */
  online: boolean;
  /** RFC 3339, UTC. */
  lastSeenAt: string;
  /** RFC 3339, UTC. */
  joinedAt: string;
  /** RFC 3339, UTC. */
  leftAt?: string | undefined;
  /** As the tenant gave them; no other tenant sees them. */
  labels: Record<string, string>;
  agentVersion: string;
  kubernetesVersion: string;
  /** How peers reach its API server. */
  apiServerUrl: string;
  podCidrs: string[];
  serviceCidrs: string[];
  nodes: number;
  /** Resource name to Kubernetes quantity. */
  allocatable: Record<string, string>;
  /** What the cluster agrees to. */
  policies: {
    name: string;
    /** Accounts at the broker that it is about; `*` for all. Absent: only the cluster's own. */
    tenants?: string[] | undefined;
    asConsumer: {
      enabled: boolean;
      autoAccept: boolean;
      /** Cluster IDs; `*` for all. */
      peers: string[];
    };
    asProvider: {
      enabled: boolean;
      autoAccept: boolean;
      peers: string[];
      /** Resource name to Kubernetes quantity. */
      maxResourcesPerPeer: Record<string, string>;
      classes: string[];
    };
    /** Links to peers. Absent: allowed. */
    network?:
      | {
          enabled: boolean;
          /** Ranges within which those of a peer must lie; empty: any. */
          remoteCidrs: string[];
        }
      | undefined;
  }[];
  /** What its peers are told to be linked with it; absent: it makes no links. */
  network?:
    | {
        /** What pods really have. */
        podCidrs: string[];
        /** From which addresses are given to what is no pod; the first one counts. */
        externalCidrs: string[];
        /** Where a NodePort may be reached, the likeliest first. */
        nodeAddresses: string[];
        /** Whether Services of type LoadBalancer get an address. Absent: not known. */
        loadBalancer?: boolean | undefined;
        /** address:port, of the external range, at which peers reach the API server through the link. */
        apiServerProxy?: string | undefined;
      }
    | undefined;
  /** From which its agent was seen lately, the newest first. */
  publicAddresses?: string[] | undefined;
  /** RFC 7638 thumbprint of the key it enrolled with. */
  keyThumbprint: string;
  version: number;
}

export interface DirectoryEntry {
  tenant: string;
  /** The name peers know a cluster by. */
  cluster: string;
  region: string;
  labels: Record<string, string>;
  classes: string[];
  /** A hint, in the owner's words. */
  capacity: Record<string, string>;
  description: string;
  /** RFC 3339, UTC. */
  publishedAt: string;
  /** RFC 3339, UTC. */
  updatedAt: string;
}

export interface Event {
  specversion: '1.0';
  /** Unique; the same event has the same id in the feed and at every webhook. */
  id: string;
  /** The broker and the tenant whose event it is. */
  source: string;
  /** `dev.isthmus.SUBJECT.WHAT.vN`; a change that readers could not bear gets a new N. */
  type: string;
  /** What it is about, for example `peering/pe_…`. */
  subject: string;
  /** RFC 3339, UTC. */
  time: string;
  datacontenttype: 'application/json';
  data: Record<string, unknown>;
}

export interface EventTarget {
  id: string;
  type: 'eventbridge' | 'sqs';
  arn: string;
  roleArn: string;
  /** The principal that assumes the role: what its trust policy has to name. */
  principal: string;
  /** What the trust policy has to ask for (`sts:ExternalId`). The same for all targets of the tenant. */
  externalId: string;
  description: string;
  types: string[];
  state: 'enabled' | 'disabled';
  /** RFC 3339, UTC. */
  disabledAt?: string | undefined;
  disabledReason?: string | undefined;
  /** Every attempt since then failed. */
  failingSince?: string | undefined;
  /** RFC 3339, UTC. */
  createdAt: string;
  createdBy: string;
  version: number;
}

export interface EventTargetDelivery {
  /** The id of the event. */
  id: string;
  type: string;
  subject: string;
  /** dead: a dead letter; nothing more is tried until it is replayed. */
  state: 'pending' | 'delivered' | 'dead';
  attempts: number;
  /** RFC 3339, UTC. */
  createdAt: string;
  /** RFC 3339, UTC. */
  nextAttemptAt?: string | undefined;
  target: string;
  lastAttempt?:
    | {
        /** RFC 3339, UTC. */
        at: string;
        durationMs: number;
        /** The id that EventBridge or SQS gave to what it took. */
        receipt?: string | undefined;
        /** Why it was not taken, with the code of AWS where there is one. */
        error?: string | undefined;
      }
    | undefined;
}

export interface Invitation {
  id: string;
  /** The provider. */
  cluster: string;
  /** Most that one peering gets; what is not named, the PeeringPolicy alone limits. */
  limits: Record<string, string>;
  classes: string[];
  /** How many peerings it makes. */
  uses: number;
  usesLeft: number;
  /** For the inviting tenant only. */
  note: string;
  state: 'open' | 'used' | 'expired' | 'revoked';
  /** RFC 3339, UTC. */
  createdAt: string;
  createdBy: string;
  /** RFC 3339, UTC. */
  expiresAt: string;
  /** RFC 3339, UTC. */
  revokedAt?: string | undefined;
  redemptions: {
    peering: string;
    /** The tenant that used it. */
    tenant: string;
    /** The consumer. */
    cluster: string;
    /** RFC 3339, UTC. */
    at: string;
  }[];
  version: number;
}

export interface IssuedApiKey {
  key: {
    id: string;
    name: string;
    /** The beginning of the key, to recognise it by. */
    prefix: string;
    role: 'viewer' | 'operator' | 'admin';
    /** Absent: everything the role allows. */
    scopes?: string[] | undefined;
    /** RFC 3339, UTC. */
    createdAt: string;
    /** RFC 3339, UTC. */
    expiresAt?: string | undefined;
    /** RFC 3339, UTC. */
    revokedAt?: string | undefined;
    replacedBy?: string | undefined;
    /** To the hour. */
    lastUsedAt?: string | undefined;
  };
  /** Shown once and stored nowhere. */
  secret: string;
}

export interface Issuer {
  id: string;
  url: string;
  audience: string;
  claims: {
    /** Default sub. */
    subject?: string | undefined;
    /** Default email; counts beside email_verified: true. */
    email?: string | undefined;
    /** A word or a list of words that roles maps. Absent: only members are let in. */
    role?: string | undefined;
  };
  roles: Record<string, 'viewer' | 'operator' | 'admin'>;
  /** RFC 3339, UTC. */
  createdAt: string;
  version: number;
}

export interface JoinToken {
  /** Shown once. Works once. */
  token: string;
  /** The name peers know a cluster by. */
  cluster: string;
  /** RFC 3339, UTC. */
  expiresAt: string;
}

export interface Member {
  id: string;
  email?: string | undefined;
  issuer?: string | undefined;
  subject?: string | undefined;
  name?: string | undefined;
  role: 'viewer' | 'operator' | 'admin';
  /** RFC 3339, UTC. */
  createdAt: string;
  version: number;
}

export interface OwnTenant {
  /** Given once: it is part of every API key, and never given again. */
  name: string;
  displayName: string;
  /** suspended: every request is refused; running peerings go on. deleting: can only be read. */
  state: 'active' | 'suspended' | 'deleting';
  /** RFC 3339, UTC. */
  createdAt: string;
  limits: {
    /** Clusters that have joined and not left. */
    clusters: number;
    /** Peerings that have not ended. */
    peerings: number;
    /** Requests of members and keys. */
    requestsPerMinute: number;
    /** Requests of agents. */
    eventsPerMinute: number;
  };
  suspendedReason?: string | undefined;
  /** RFC 3339, UTC. */
  deletionStartedAt?: string | undefined;
  version: number;
  /** What is used of the limits that count things. */
  usage: {
    clusters: number;
    peerings: number;
  };
}

export interface Peering {
  id: string;
  /** The name peers know a cluster by. */
  consumer: string;
  /** The name peers know a cluster by. */
  provider: string;
  /** What was asked for. */
  resources: Record<string, string>;
  class: string;
  /** As the tenant gave them; no other tenant sees them. */
  labels: Record<string, string>;
  phase:
    | 'Proposed'
    | 'Connecting'
    | 'Authenticating'
    | 'Negotiating'
    | 'Ready'
    | 'Degraded'
    | 'Unpeering'
    | 'Gone'
    | 'Failed';
  conditions: {
    type: string;
    status: 'True' | 'False' | 'Unknown';
    reason: string;
    /** When it does not hold: what is missing. */
    message: string;
    side: 'consumer' | 'provider' | 'both';
    /** RFC 3339, UTC. */
    since: string;
    /** What a person can do about it; empty when there is nothing but waiting. */
    action: string;
  }[];
  /** One sentence: what is being waited for, or that nothing is. */
  waitingFor: string;
  /** What the provider granted. */
  granted?: Record<string, string> | undefined;
  /** Absent: made before there was any. */
  network?:
    | {
        enabled: boolean;
        /** As asked for; a pair that is peered both ways has one link, and the first peering decides. */
        gatewayLocation: 'consumer' | 'provider';
        mtu: number;
        serviceType?: 'LoadBalancer' | 'NodePort' | 'ClusterIP' | undefined;
        inBand: boolean;
        /** Absent: none yet, or none any more. */
        link?:
          | {
              /** The cluster that is dialled. */
              server: string;
              /** Where the other one dials it, `address:port`. */
              endpoint?: string | undefined;
              serviceType: 'LoadBalancer' | 'NodePort' | 'ClusterIP';
              /** Asked for. */
              mtu: number;
              consumer: {
                /** As this side sees it. */
                status: 'Connected' | 'Connecting' | 'Error' | 'Unknown';
                /** `address:port` from which the other side sends. */
                peerEndpoint?: string | undefined;
                /** Round trip, for example `12ms`. */
                latency?: string | undefined;
                /** Of the last key exchange, when it was reported. */
                handshakeAgeSeconds?: number | undefined;
                /** Found on the path, in bytes. */
                mtu?: number | undefined;
                /** Of the recent probes, in percent. */
                packetLoss?: number | undefined;
                /** Bytes per second through the tunnel in the last whole minute that was reported; reports come every five minutes while nothing else changes. */
                throughput?:
                  | {
                      received: number;
                      sent: number;
                    }
                  | undefined;
                /** RFC 3339, UTC. */
                reportedAt?: string | undefined;
              };
              provider: {
                /** As this side sees it. */
                status: 'Connected' | 'Connecting' | 'Error' | 'Unknown';
                /** `address:port` from which the other side sends. */
                peerEndpoint?: string | undefined;
                /** Round trip, for example `12ms`. */
                latency?: string | undefined;
                /** Of the last key exchange, when it was reported. */
                handshakeAgeSeconds?: number | undefined;
                /** Found on the path, in bytes. */
                mtu?: number | undefined;
                /** Of the recent probes, in percent. */
                packetLoss?: number | undefined;
                /** Bytes per second through the tunnel in the last whole minute that was reported; reports come every five minutes while nothing else changes. */
                throughput?:
                  | {
                      received: number;
                      sent: number;
                    }
                  | undefined;
                /** RFC 3339, UTC. */
                reportedAt?: string | undefined;
              };
            }
          | undefined;
      }
    | undefined;
  /** The virtual node in the consumer. */
  nodeName: string;
  /** RFC 3339, UTC. */
  createdAt: string;
  /** When each phase was first entered. */
  phaseSince: Partial<
    Record<
      | 'Proposed'
      | 'Connecting'
      | 'Authenticating'
      | 'Negotiating'
      | 'Ready'
      | 'Degraded'
      | 'Unpeering'
      | 'Gone'
      | 'Failed',
      string
    >
  >;
  /** RFC 3339, UTC. */
  unpeerRequestedAt?: string | undefined;
  /** What could not be removed because a side was dead. */
  leftBehind: string[];
  /** Fields of what your clusters report that do not have their form and were left out. Absent: none. */
  warnings?:
    | {
        side: 'consumer' | 'provider';
        message: string;
      }[]
    | undefined;
  /** Present when the other cluster is of another tenant. */
  across?:
    | {
        /** Which of the two clusters is yours. */
        side: 'consumer' | 'provider';
        /** The tenant of the other cluster. */
        peerTenant: string;
        /** How the provider's tenant agreed. */
        by: 'invitation' | 'request';
        /** What the provider agreed to at most; what is not named is not limited by it. */
        limits: Record<string, string>;
        /** Classes that the provider agreed to. */
        classes: string[];
        /** When it ends unless both clusters have agreed by then. */
        lapsesAt: string;
        /** The side that unpeered. */
        endedBy?: 'consumer' | 'provider' | undefined;
      }
    | undefined;
  /** The only writer of its terms: a Peering object in the consumer cluster, or this API. Either may end it. */
  owner: {
    kind: 'object' | 'broker';
    /** Of the Peering object in the consumer. */
    name?: string | undefined;
  };
  version: number;
}

export interface PeeringRequest {
  id: string;
  /** Whether you are asked or ask. */
  direction: 'received' | 'sent';
  consumerTenant: string;
  /** The name peers know a cluster by. */
  consumer: string;
  providerTenant: string;
  /** The name peers know a cluster by. */
  provider: string;
  /** Resource name to Kubernetes quantity. */
  resources: Record<string, string>;
  class: string;
  /** Why it was asked for. */
  reason: string;
  state: 'pending' | 'approved' | 'rejected' | 'expired' | 'withdrawn';
  /** RFC 3339, UTC. */
  createdAt: string;
  /** RFC 3339, UTC. */
  expiresAt: string;
  /** RFC 3339, UTC. */
  decidedAt?: string | undefined;
  /** What the provider's tenant said to it. */
  answer?: string | undefined;
  /** The peering that it became. */
  peering?: string | undefined;
  /** For the provider's tenant only: the principal or the rule that decided. */
  decidedBy?: string | undefined;
  version: number;
}

export interface PeeringSeries {
  /** RFC 3339, UTC. */
  from: string;
  /** RFC 3339, UTC. */
  to: string;
  /** 60 in an hour, 900 in a day. */
  stepSeconds: number;
  /** As this end measured it. Absent: it is of another tenant. */
  consumer?:
    | {
        /** When the step begins. By the clock of the cluster. */
        at: string;
        /** Mean of the round trips. */
        rttMs?: number | undefined;
        /** The highest of the probes, in percent. */
        packetLoss?: number | undefined;
        /** Bytes per second that came through the tunnel. */
        received?: number | undefined;
        /** Bytes per second that went into it. */
        sent?: number | undefined;
        /** Cores. Known to the provider, as the next three. */
        cpuGranted?: number | undefined;
        cpuUsed?: number | undefined;
        /** Bytes. */
        memoryGranted?: number | undefined;
        memoryUsed?: number | undefined;
      }[]
    | undefined;
  /** Ordered by time; a step in which nothing was measured is left out. */
  provider?:
    | {
        /** When the step begins. By the clock of the cluster. */
        at: string;
        /** Mean of the round trips. */
        rttMs?: number | undefined;
        /** The highest of the probes, in percent. */
        packetLoss?: number | undefined;
        /** Bytes per second that came through the tunnel. */
        received?: number | undefined;
        /** Bytes per second that went into it. */
        sent?: number | undefined;
        /** Cores. Known to the provider, as the next three. */
        cpuGranted?: number | undefined;
        cpuUsed?: number | undefined;
        /** Bytes. */
        memoryGranted?: number | undefined;
        memoryUsed?: number | undefined;
      }[]
    | undefined;
}

export interface Problem {
  type: string;
  title: string;
  status: number;
  detail: string;
  /** Stable; see the error table. */
  code: string;
  requestId: string;
  retryable: boolean;
  remedy: string;
  /** One entry per refused field. */
  errors?:
    | {
        field: string;
        message: string;
        value?: unknown | undefined;
      }[]
    | undefined;
}

export interface Tenant {
  /** Given once: it is part of every API key, and never given again. */
  name: string;
  displayName: string;
  /** suspended: every request is refused; running peerings go on. deleting: can only be read. */
  state: 'active' | 'suspended' | 'deleting';
  /** RFC 3339, UTC. */
  createdAt: string;
  limits: {
    /** Clusters that have joined and not left. */
    clusters: number;
    /** Peerings that have not ended. */
    peerings: number;
    /** Requests of members and keys. */
    requestsPerMinute: number;
    /** Requests of agents. */
    eventsPerMinute: number;
  };
  suspendedReason?: string | undefined;
  /** RFC 3339, UTC. */
  deletionStartedAt?: string | undefined;
  version: number;
}

export interface Webhook {
  id: string;
  url: string;
  description: string;
  types: string[];
  state: 'enabled' | 'disabled';
  /** RFC 3339, UTC. */
  disabledAt?: string | undefined;
  disabledReason?: string | undefined;
  /** Every attempt since then failed. */
  failingSince?: string | undefined;
  /** Until then the secret before this one signs as well. */
  oldSecretExpiresAt?: string | undefined;
  /** RFC 3339, UTC. */
  createdAt: string;
  createdBy: string;
  version: number;
}

export interface WebhookDelivery {
  /** The id of the event, and the header webhook-id. */
  id: string;
  webhook: string;
  type: string;
  subject: string;
  /** dead: a dead letter; nothing more is tried until it is replayed. */
  state: 'pending' | 'delivered' | 'dead';
  attempts: number;
  /** RFC 3339, UTC. */
  createdAt: string;
  /** RFC 3339, UTC. */
  nextAttemptAt?: string | undefined;
  lastAttempt?:
    | {
        /** RFC 3339, UTC. */
        at: string;
        durationMs: number;
        /** What the receiver answered. */
        status?: number | undefined;
        /** Why there was no answer. */
        error?: string | undefined;
        /** The first 1,024 bytes of it. */
        answer?: string | undefined;
      }
    | undefined;
}

export const operations = {
  listClusters: ['GET', '/v1/clusters'],
  getCluster: ['GET', '/v1/clusters/{cluster}'],
  changeCluster: ['PATCH', '/v1/clusters/{cluster}'],
  deleteCluster: ['DELETE', '/v1/clusters/{cluster}'],
  createJoinToken: ['POST', '/v1/join-tokens'],
  createPeering: ['POST', '/v1/peerings'],
  listPeerings: ['GET', '/v1/peerings'],
  getPeering: ['GET', '/v1/peerings/{peering}'],
  changePeering: ['PATCH', '/v1/peerings/{peering}'],
  deletePeering: ['DELETE', '/v1/peerings/{peering}'],
  getPeeringSamples: ['GET', '/v1/peerings/{peering}/samples'],
  createApprovalRule: ['POST', '/v1/approval-rules'],
  listApprovalRules: ['GET', '/v1/approval-rules'],
  deleteApprovalRule: ['DELETE', '/v1/approval-rules/{rule}'],
  getDirectoryEntry: ['GET', '/v1/directory/{tenant}/{cluster}'],
  listDirectory: ['GET', '/v1/directory'],
  publishCluster: ['POST', '/v1/directory'],
  unpublishCluster: ['DELETE', '/v1/directory/{cluster}'],
  createInvitation: ['POST', '/v1/invitations'],
  listInvitations: ['GET', '/v1/invitations'],
  getInvitation: ['GET', '/v1/invitations/{invitation}'],
  revokeInvitation: ['DELETE', '/v1/invitations/{invitation}'],
  redeemInvitation: ['POST', '/v1/invitations/redeem'],
  approveRequest: ['POST', '/v1/requests/{request}/approve'],
  createRequest: ['POST', '/v1/requests'],
  listRequests: ['GET', '/v1/requests'],
  getRequest: ['GET', '/v1/requests/{request}'],
  withdrawRequest: ['DELETE', '/v1/requests/{request}'],
  rejectRequest: ['POST', '/v1/requests/{request}/reject'],
  listEvents: ['GET', '/v1/events'],
  listAudit: ['GET', '/v1/audit'],
  createKey: ['POST', '/v1/keys'],
  listKeys: ['GET', '/v1/keys'],
  rotateKey: ['POST', '/v1/keys/{key}/rotate'],
  revokeKey: ['DELETE', '/v1/keys/{key}'],
  getMe: ['GET', '/v1/tenants/me'],
  createTenant: ['POST', '/v1/tenants'],
  listTenants: ['GET', '/v1/tenants'],
  getTenant: ['GET', '/v1/tenants/{tenant}'],
  changeTenant: ['PATCH', '/v1/tenants/{tenant}'],
  deleteTenant: ['DELETE', '/v1/tenants/{tenant}'],
  recoverTenant: ['POST', '/v1/tenants/{tenant}/recovery'],
  getOwnTenant: ['GET', '/v1/tenant'],
  renameTenant: ['PATCH', '/v1/tenant'],
  exportTenant: ['GET', '/v1/tenant/export'],
  requestDeletion: ['POST', '/v1/tenant/deletion'],
  confirmDeletion: ['POST', '/v1/tenant/deletion/confirm'],
  addMember: ['POST', '/v1/members'],
  listMembers: ['GET', '/v1/members'],
  getMember: ['GET', '/v1/members/{member}'],
  changeMember: ['PATCH', '/v1/members/{member}'],
  removeMember: ['DELETE', '/v1/members/{member}'],
  registerIssuer: ['POST', '/v1/issuers'],
  listIssuers: ['GET', '/v1/issuers'],
  removeIssuer: ['DELETE', '/v1/issuers/{issuer}'],
  createWebhook: ['POST', '/v1/webhooks'],
  listWebhooks: ['GET', '/v1/webhooks'],
  getWebhook: ['GET', '/v1/webhooks/{webhook}'],
  changeWebhook: ['PATCH', '/v1/webhooks/{webhook}'],
  deleteWebhook: ['DELETE', '/v1/webhooks/{webhook}'],
  rotateWebhook: ['POST', '/v1/webhooks/{webhook}/rotate'],
  testWebhook: ['POST', '/v1/webhooks/{webhook}/test'],
  replayWebhook: ['POST', '/v1/webhooks/{webhook}/replay'],
  listDeliveries: ['GET', '/v1/webhooks/{webhook}/deliveries'],
  getDelivery: ['GET', '/v1/webhooks/{webhook}/deliveries/{delivery}'],
  replayDelivery: ['POST', '/v1/webhooks/{webhook}/deliveries/{delivery}/replay'],
  createEventTarget: ['POST', '/v1/event-targets'],
  listEventTargets: ['GET', '/v1/event-targets'],
  getEventTarget: ['GET', '/v1/event-targets/{target}'],
  changeEventTarget: ['PATCH', '/v1/event-targets/{target}'],
  deleteEventTarget: ['DELETE', '/v1/event-targets/{target}'],
  testEventTarget: ['POST', '/v1/event-targets/{target}/test'],
  replayEventTarget: ['POST', '/v1/event-targets/{target}/replay'],
  listTargetDeliveries: ['GET', '/v1/event-targets/{target}/deliveries'],
  getTargetDelivery: ['GET', '/v1/event-targets/{target}/deliveries/{delivery}'],
  replayTargetDelivery: ['POST', '/v1/event-targets/{target}/deliveries/{delivery}/replay'],
  getHealth: ['GET', '/v1/health'],
  getOpenApi: ['GET', '/v1/openapi.json'],
} as const;

/** One request, ready to be sent to the URL of the broker: `path` is filled in and begins with /v1. */
export interface ApiRequest {
  readonly operation: OperationName;
  readonly method: string;
  readonly path: string;
  readonly query?: Readonly<Record<string, string | number | boolean | undefined>>;
  /** To be sent as JSON. */
  readonly body?: unknown;
}

/** Transport, provided by the user of the client: sends, rejects for problems, resolves with the parsed body. */
export type Send<Options> = (request: ApiRequest, options?: Options) => Promise<unknown>;

export type OperationName = keyof typeof operations;

interface Input {
  readonly path?: Readonly<Record<string, string>>;
  readonly query?: NonNullable<ApiRequest['query']>;
  readonly body?: unknown;
}

/** `Options` are the sender's own, for example headers or a deadline. */
export function createBrokerApi<Options>(send: Send<Options>): BrokerApi<Options> {
  const calls = Object.entries(operations).map(([operation, [method, template]]) => [
    operation,
    ({ path = {}, ...rest }: Input = {}, options?: Options) => {
      const filled = template.replaceAll(/\{(\w+)\}/g, (_, name: string) => encodeURIComponent(path[name] ?? ''));
      return send({ operation: operation as OperationName, method, path: filled, ...rest }, options);
    },
  ]);
  return Object.fromEntries(calls) as BrokerApi<Options>;
}

export interface BrokerApi<Options = unknown> {
  /** List the clusters that joined */
  listClusters(
    input?: {
      query?: {
        /** 1 to 200, default 50. */
        limit?: number | undefined;
        /** From the previous answer. */
        cursor?: string | undefined;
        /** true or false */
        includeLeft?: boolean | undefined;
        /** Only those with all of these labels: KEY=VALUE, or KEY for any value, separated by commas. */
        labels?: string | undefined;
      };
    },
    options?: Options,
  ): Promise<{
    items: Cluster[];
    /** Present when there may be more: ask again with it. */
    cursor?: string | undefined;
  }>;

  /** Read one cluster */
  getCluster(
    input: {
      path: {
        cluster: string;
      };
    },
    options?: Options,
  ): Promise<Cluster>;

  /** Label a cluster */
  changeCluster(
    input: {
      path: {
        cluster: string;
      };
      body: {
        /** All that it is to have. */
        labels: Readonly<Record<string, string>>;
      };
    },
    options?: Options,
  ): Promise<Cluster>;

  /** Let a cluster leave */
  deleteCluster(
    input: {
      path: {
        cluster: string;
      };
      query?: {
        /** true or false */
        force?: boolean | undefined;
      };
    },
    options?: Options,
  ): Promise<Cluster>;

  /** Make a join token */
  createJoinToken(
    input: {
      body: {
        /** The name peers know a cluster by. */
        cluster: string;
        /** The cluster has joined, has lost its key, and may enrol with another one. Its peers still have to agree to that key. */
        replaceKey?: boolean | undefined;
      };
    },
    options?: Options,
  ): Promise<JoinToken>;

  /** Peer two clusters */
  createPeering(
    input: {
      query?: {
        /** Seconds to wait for the outcome, at most 25. The answer is the state reached by then, or sooner where the broker waits less. Each second of waiting counts as a request; at the limit of the tenant the answer is the state as it is. */
        wait?: number | undefined;
      };
      body: {
        /** The name peers know a cluster by. */
        consumer: string;
        /** The name peers know a cluster by. */
        provider: string;
        /** Absent members are limited by the provider alone. */
        resources?: Readonly<Record<string, string>> | undefined;
        class?: string | undefined;
        network?:
          | {
              /** Whether pods of the two clusters reach each other. Default: when both agents can and both policies allow it. */
              enabled?: boolean | undefined;
              /** The side that is dialled. Default: provider. */
              gatewayLocation?: 'consumer' | 'provider' | undefined;
              /** Of the tunnel, at most; what the path lets through is measured. Default: 1340. */
              mtu?: number | undefined;
              /** How the dialled gateway is exposed. Default: LoadBalancer where those are known to work, otherwise NodePort. */
              serviceType?: 'LoadBalancer' | 'NodePort' | 'ClusterIP' | undefined;
              /** Whether the provider's API server is reached through the link. Default: false. */
              inBand?: boolean | undefined;
            }
          | undefined;
        /** All that it is to have. Absent: a peering that is there keeps its own. */
        labels?: Readonly<Record<string, string>> | undefined;
      };
    },
    options?: Options,
  ): Promise<Peering>;

  /** List peerings */
  listPeerings(
    input?: {
      query?: {
        /** 1 to 200, default 50. */
        limit?: number | undefined;
        /** From the previous answer. */
        cursor?: string | undefined;
        /** true or false */
        includeGone?: boolean | undefined;
        /** Only those in which this cluster takes part. */
        cluster?: string | undefined;
        consumer?: string | undefined;
        provider?: string | undefined;
        /** Only those with all of these labels: KEY=VALUE, or KEY for any value, separated by commas. */
        labels?: string | undefined;
      };
    },
    options?: Options,
  ): Promise<{
    items: Peering[];
    /** Present when there may be more: ask again with it. */
    cursor?: string | undefined;
  }>;

  /** Read one peering */
  getPeering(
    input: {
      path: {
        peering: string;
      };
      query?: {
        /** Seconds to wait for the outcome, at most 25. The answer is the state reached by then, or sooner where the broker waits less. Each second of waiting counts as a request; at the limit of the tenant the answer is the state as it is. */
        wait?: number | undefined;
      };
    },
    options?: Options,
  ): Promise<Peering | undefined>;

  /** Label a peering */
  changePeering(
    input: {
      path: {
        peering: string;
      };
      body: {
        /** All that it is to have. */
        labels: Readonly<Record<string, string>>;
      };
    },
    options?: Options,
  ): Promise<Peering>;

  /** Unpeer */
  deletePeering(
    input: {
      path: {
        peering: string;
      };
      query?: {
        /** Seconds to wait for the outcome, at most 25. The answer is the state reached by then, or sooner where the broker waits less. Each second of waiting counts as a request; at the limit of the tenant the answer is the state as it is. */
        wait?: number | undefined;
        /** true or false */
        force?: boolean | undefined;
      };
    },
    options?: Options,
  ): Promise<Peering>;

  /** Read what was measured of a peering lately */
  getPeeringSamples(
    input: {
      path: {
        peering: string;
      };
      query?: {
        /** `hour`: a point each minute. `day`: each 15 minutes. */
        span?: 'hour' | 'day' | undefined;
      };
    },
    options?: Options,
  ): Promise<PeeringSeries>;

  /** Let requests be approved automatically */
  createApprovalRule(
    input: {
      body: {
        name: string;
        tenants: readonly string[];
        labels?: Readonly<Record<string, string>> | undefined;
        /** Resource name to Kubernetes quantity. */
        maxResources?: Readonly<Record<string, string>> | undefined;
        /** Resource classes; `*` for all. */
        classes?: readonly string[] | undefined;
        uses?: number | undefined;
      };
    },
    options?: Options,
  ): Promise<ApprovalRule>;

  /** List approval rules */
  listApprovalRules(
    input?: {
      query?: {
        /** 1 to 200, default 50. */
        limit?: number | undefined;
        /** From the previous answer. */
        cursor?: string | undefined;
      };
    },
    options?: Options,
  ): Promise<{
    items: ApprovalRule[];
    /** Present when there may be more: ask again with it. */
    cursor?: string | undefined;
  }>;

  /** Delete an approval rule */
  deleteApprovalRule(
    input: {
      path: {
        rule: string;
      };
    },
    options?: Options,
  ): Promise<ApprovalRule>;

  /** Read one published cluster */
  getDirectoryEntry(
    input: {
      path: {
        tenant: string;
        cluster: string;
      };
    },
    options?: Options,
  ): Promise<DirectoryEntry>;

  /** List published clusters of all tenants */
  listDirectory(
    input?: {
      query?: {
        /** 1 to 200, default 50. */
        limit?: number | undefined;
        /** From the previous answer. */
        cursor?: string | undefined;
        region?: string | undefined;
        /** Only those with all of these labels, KEY=VALUE separated by commas. */
        labels?: string | undefined;
        /** Only those that offer this class. */
        class?: string | undefined;
        /** true or false */
        mine?: boolean | undefined;
      };
    },
    options?: Options,
  ): Promise<{
    items: DirectoryEntry[];
    /** Present when there may be more: ask again with it. */
    cursor?: string | undefined;
  }>;

  /** Publish a cluster, or replace its description */
  publishCluster(
    input: {
      body: {
        /** The name peers know a cluster by. */
        cluster: string;
        region?: string | undefined;
        labels?: Readonly<Record<string, string>> | undefined;
        /** Resource classes; `*` for all. */
        classes?: readonly string[] | undefined;
        /** Resource name to Kubernetes quantity. */
        capacity?: Readonly<Record<string, string>> | undefined;
        description?: string | undefined;
      };
    },
    options?: Options,
  ): Promise<DirectoryEntry>;

  /** Take a cluster of yours out of the directory */
  unpublishCluster(
    input: {
      path: {
        cluster: string;
      };
    },
    options?: Options,
  ): Promise<DirectoryEntry>;

  /** Invite other tenants to a cluster */
  createInvitation(
    input: {
      body: {
        /** The name peers know a cluster by. */
        cluster: string;
        /** Resource name to Kubernetes quantity. */
        limits?: Readonly<Record<string, string>> | undefined;
        /** Resource classes; `*` for all. */
        classes?: readonly string[] | undefined;
        expiresInSeconds?: number | undefined;
        uses?: number | undefined;
        note?: string | undefined;
      };
    },
    options?: Options,
  ): Promise<{
    invitation: Invitation;
    /** A bearer secret, shown once and stored as a hash: possession is enough to use it. */
    code: string;
  }>;

  /** List invitations */
  listInvitations(
    input?: {
      query?: {
        /** 1 to 200, default 50. */
        limit?: number | undefined;
        /** From the previous answer. */
        cursor?: string | undefined;
      };
    },
    options?: Options,
  ): Promise<{
    items: Invitation[];
    /** Present when there may be more: ask again with it. */
    cursor?: string | undefined;
  }>;

  /** Read one invitation */
  getInvitation(
    input: {
      path: {
        invitation: string;
      };
    },
    options?: Options,
  ): Promise<Invitation>;

  /** Revoke an invitation */
  revokeInvitation(
    input: {
      path: {
        invitation: string;
      };
    },
    options?: Options,
  ): Promise<Invitation>;

  /** Use an invitation of another tenant */
  redeemInvitation(
    input: {
      query?: {
        /** Seconds to wait for the outcome, at most 25. The answer is the state reached by then, or sooner where the broker waits less. Each second of waiting counts as a request; at the limit of the tenant the answer is the state as it is. */
        wait?: number | undefined;
      };
      body: {
        /** As it was printed, isi_…. */
        code: string;
        /** A cluster of yours. */
        consumer: string;
        /** What is not named is asked for up to the invitation's limit. */
        resources?: Readonly<Record<string, string>> | undefined;
        /** Default: the first class of the invitation. */
        class?: string | undefined;
      };
    },
    options?: Options,
  ): Promise<Peering>;

  /** Approve a request */
  approveRequest(
    input: {
      path: {
        request: string;
      };
      body: {
        /** Told to the asking tenant. */
        reason?: string | undefined;
      };
    },
    options?: Options,
  ): Promise<PeeringRequest>;

  /** Ask another tenant for a published cluster */
  createRequest(
    input: {
      body: {
        /** A cluster of yours. */
        consumer: string;
        providerTenant: string;
        /** A cluster in the directory. */
        provider: string;
        /** Resource name to Kubernetes quantity. */
        resources?: Readonly<Record<string, string>> | undefined;
        class?: string | undefined;
        reason?: string | undefined;
        expiresInSeconds?: number | undefined;
      };
    },
    options?: Options,
  ): Promise<PeeringRequest>;

  /** List requests */
  listRequests(
    input?: {
      query?: {
        /** 1 to 200, default 50. */
        limit?: number | undefined;
        /** From the previous answer. */
        cursor?: string | undefined;
        direction?: 'received' | 'sent' | undefined;
        state?: 'pending' | 'approved' | 'rejected' | 'expired' | 'withdrawn' | undefined;
      };
    },
    options?: Options,
  ): Promise<{
    items: PeeringRequest[];
    /** Present when there may be more: ask again with it. */
    cursor?: string | undefined;
  }>;

  /** Read one request */
  getRequest(
    input: {
      path: {
        request: string;
      };
    },
    options?: Options,
  ): Promise<PeeringRequest>;

  /** Withdraw a request */
  withdrawRequest(
    input: {
      path: {
        request: string;
      };
    },
    options?: Options,
  ): Promise<PeeringRequest>;

  /** Reject a request */
  rejectRequest(
    input: {
      path: {
        request: string;
      };
      body: {
        /** Told to the asking tenant. */
        reason?: string | undefined;
      };
    },
    options?: Options,
  ): Promise<PeeringRequest>;

  /** Follow the event feed */
  listEvents(
    input?: {
      query?: {
        /** 1 to 200, default 50. */
        limit?: number | undefined;
        /** From the previous answer. */
        cursor?: string | undefined;
        /** Only those about this subject, for example `peering/pe_…`. */
        subject?: string | undefined;
        /** Seconds to wait for the outcome, at most 25. The answer is the state reached by then, or sooner where the broker waits less. Each second of waiting counts as a request; at the limit of the tenant the answer is the state as it is. */
        wait?: number | undefined;
      };
    },
    options?: Options,
  ): Promise<{
    items: Event[];
    /** Always present: ask again with it to follow the feed. */
    cursor: string;
    /** The WebSocket that says when there is something new. Absent: at `/v1/agent/connect` of the broker. */
    listenUrl?: string | undefined;
  }>;

  /** Read the audit log */
  listAudit(
    input?: {
      query?: {
        /** 1 to 200, default 50. */
        limit?: number | undefined;
        /** From the previous answer. */
        cursor?: string | undefined;
        subject?: string | undefined;
        /** For example `api-key.revoke`. */
        action?: string | undefined;
        /** For example `api-key/ak_…` or `operator/ok_…`. */
        principal?: string | undefined;
        /** Records of this time or later. */
        since?: string | undefined;
        /** Records before this time. */
        until?: string | undefined;
      };
    },
    options?: Options,
  ): Promise<{
    items: AuditRecord[];
    /** Present when there may be more: ask again with it. */
    cursor?: string | undefined;
  }>;

  /** Make an API key */
  createKey(
    input: {
      body: {
        name: string;
        role: 'viewer' | 'operator' | 'admin';
        scopes?:
          | readonly (
              | 'clusters:read'
              | 'clusters:join'
              | 'clusters:replace-key'
              | 'clusters:label'
              | 'clusters:remove'
              | 'peerings:read'
              | 'peerings:write'
              | 'invitations:read'
              | 'invitations:write'
              | 'requests:read'
              | 'requests:write'
              | 'approval-rules:read'
              | 'approval-rules:write'
              | 'directory:read'
              | 'directory:write'
              | 'events:read'
              | 'audit:read'
              | 'webhooks:read'
              | 'webhooks:write'
              | 'keys:read'
              | 'keys:write'
              | 'tenant:read'
              | 'tenant:write'
              | 'tenant:export'
              | 'tenant:delete'
              | 'members:read'
              | 'members:write'
              | 'issuers:read'
              | 'issuers:write'
            )[]
          | undefined;
        expiresInSeconds?: number | undefined;
      };
    },
    options?: Options,
  ): Promise<IssuedApiKey>;

  /** List API keys */
  listKeys(
    input?: {
      query?: {
        /** 1 to 200, default 50. */
        limit?: number | undefined;
        /** From the previous answer. */
        cursor?: string | undefined;
      };
    },
    options?: Options,
  ): Promise<{
    items: {
      id: string;
      name: string;
      /** The beginning of the key, to recognise it by. */
      prefix: string;
      role: 'viewer' | 'operator' | 'admin';
      /** Absent: everything the role allows. */
      scopes?: string[] | undefined;
      /** RFC 3339, UTC. */
      createdAt: string;
      /** RFC 3339, UTC. */
      expiresAt?: string | undefined;
      /** RFC 3339, UTC. */
      revokedAt?: string | undefined;
      replacedBy?: string | undefined;
      /** To the hour. */
      lastUsedAt?: string | undefined;
    }[];
    /** Present when there may be more: ask again with it. */
    cursor?: string | undefined;
  }>;

  /** Replace an API key */
  rotateKey(
    input: {
      path: {
        key: string;
      };
      body: {
        /** How long the old secret keeps working. */
        overlapSeconds?: number | undefined;
      };
    },
    options?: Options,
  ): Promise<IssuedApiKey>;

  /** Revoke an API key */
  revokeKey(
    input: {
      path: {
        key: string;
      };
    },
    options?: Options,
  ): Promise<{
    id: string;
    name: string;
    /** The beginning of the key, to recognise it by. */
    prefix: string;
    role: 'viewer' | 'operator' | 'admin';
    /** Absent: everything the role allows. */
    scopes?: string[] | undefined;
    /** RFC 3339, UTC. */
    createdAt: string;
    /** RFC 3339, UTC. */
    expiresAt?: string | undefined;
    /** RFC 3339, UTC. */
    revokedAt?: string | undefined;
    replacedBy?: string | undefined;
    /** To the hour. */
    lastUsedAt?: string | undefined;
  }>;

  /** Read the calling principal */
  getMe(
    input?: Record<string, never>,
    options?: Options,
  ): Promise<{
    tenant: string;
    principal: string;
    role: 'viewer' | 'operator' | 'admin';
    scopes?: string[] | undefined;
  }>;

  /** Make a tenant */
  createTenant(
    input: {
      body: {
        /** Given once: it is part of every API key, and never given again. */
        name: string;
        displayName?: string | undefined;
        limits?:
          | {
              /** Clusters that have joined and not left. */
              clusters?: number | undefined;
              /** Peerings that have not ended. */
              peerings?: number | undefined;
              /** Requests of members and keys. */
              requestsPerMinute?: number | undefined;
              /** Requests of agents. */
              eventsPerMinute?: number | undefined;
            }
          | undefined;
      };
    },
    options?: Options,
  ): Promise<{
    tenant: Tenant;
    /** The first admin key of the tenant, to be handed to its owner. */
    firstKey: IssuedApiKey;
  }>;

  /** List tenants */
  listTenants(
    input?: {
      query?: {
        /** 1 to 200, default 50. */
        limit?: number | undefined;
        /** From the previous answer. */
        cursor?: string | undefined;
      };
    },
    options?: Options,
  ): Promise<{
    items: Tenant[];
    /** Present when there may be more: ask again with it. */
    cursor?: string | undefined;
  }>;

  /** Read a tenant */
  getTenant(
    input: {
      path: {
        tenant: string;
      };
    },
    options?: Options,
  ): Promise<Tenant>;

  /** Rename, suspend, resume or limit a tenant */
  changeTenant(
    input: {
      path: {
        tenant: string;
      };
      body: {
        displayName?: string | undefined;
        state?: 'active' | 'suspended' | undefined;
        /** Why it is suspended; its members are told. */
        reason?: string | undefined;
        /** null goes back to the default of the deployment. */
        limits?:
          | {
              clusters?: number | null | undefined;
              peerings?: number | null | undefined;
              requestsPerMinute?: number | null | undefined;
              eventsPerMinute?: number | null | undefined;
            }
          | undefined;
      };
    },
    options?: Options,
  ): Promise<Tenant>;

  /** Delete a tenant and everything in it */
  deleteTenant(
    input: {
      path: {
        tenant: string;
      };
      query: {
        /** The name of the tenant again. */
        confirm: string;
        /** true or false */
        force?: boolean | undefined;
      };
    },
    options?: Options,
  ): Promise<{
    state: 'deleting' | 'deleted';
    /** Peerings that still have to end. */
    peerings: string[];
  }>;

  /** Give a tenant a key whose own ones are lost */
  recoverTenant(
    input: {
      path: {
        tenant: string;
      };
      body: {
        /** Why the tenant needs a key from outside; it finds this in its audit log. */
        reason: string;
      };
    },
    options?: Options,
  ): Promise<IssuedApiKey>;

  /** Read the own tenant */
  getOwnTenant(input?: Record<string, never>, options?: Options): Promise<OwnTenant>;

  /** Rename the own tenant */
  renameTenant(
    input: {
      body: {
        displayName: string;
      };
    },
    options?: Options,
  ): Promise<OwnTenant>;

  /** Export everything of the tenant */
  exportTenant(
    input?: {
      query?: {
        /** From the previous answer. */
        cursor?: string | undefined;
      };
    },
    options?: Options,
  ): Promise<string>;

  /** Ask for the deletion of the tenant */
  requestDeletion(
    input?: Record<string, never>,
    options?: Options,
  ): Promise<{
    /** Shown once: send it back with the name of the tenant within 15 minutes. */
    confirmation: string;
    /** RFC 3339, UTC. */
    expiresAt: string;
    /** Peerings that have not ended; with any, the deletion needs force. */
    peerings: string[];
  }>;

  /** Delete the tenant and everything in it */
  confirmDeletion(
    input: {
      body: {
        /** The name of the tenant, typed again. */
        name: string;
        confirmation: string;
        /** Unpeer what has not ended. */
        force?: boolean | undefined;
      };
    },
    options?: Options,
  ): Promise<{
    state: 'deleting' | 'deleted';
    /** Peerings that still have to end. */
    peerings: string[];
  }>;

  /** Add a member */
  addMember(
    input: {
      body: {
        /** Counts when the issuer says that it is verified. Instead of issuer and subject. */
        email?: string | undefined;
        issuer?: string | undefined;
        subject?: string | undefined;
        name?: string | undefined;
        role: 'viewer' | 'operator' | 'admin';
      };
    },
    options?: Options,
  ): Promise<Member>;

  /** List members */
  listMembers(
    input?: {
      query?: {
        /** 1 to 200, default 50. */
        limit?: number | undefined;
        /** From the previous answer. */
        cursor?: string | undefined;
      };
    },
    options?: Options,
  ): Promise<{
    items: Member[];
    /** Present when there may be more: ask again with it. */
    cursor?: string | undefined;
  }>;

  /** Read a member */
  getMember(
    input: {
      path: {
        member: string;
      };
    },
    options?: Options,
  ): Promise<Member>;

  /** Change the role or name of a member */
  changeMember(
    input: {
      path: {
        member: string;
      };
      body: {
        role?: 'viewer' | 'operator' | 'admin' | undefined;
        name?: string | undefined;
      };
    },
    options?: Options,
  ): Promise<Member>;

  /** Remove a member */
  removeMember(
    input: {
      path: {
        member: string;
      };
    },
    options?: Options,
  ): Promise<Member>;

  /** Register an identity provider */
  registerIssuer(
    input: {
      body: {
        /** As in the iss claim of its tokens; its keys are found by OpenID Connect discovery. */
        url: string;
        /** As in the aud claim. */
        audience: string;
        claims?:
          | {
              /** Default sub. */
              subject?: string | undefined;
              /** Default email; counts beside email_verified: true. */
              email?: string | undefined;
              /** A word or a list of words that roles maps. Absent: only members are let in. */
              role?: string | undefined;
            }
          | undefined;
        /** Word in the role claim to role in this tenant. */
        roles?: Readonly<Record<string, 'viewer' | 'operator' | 'admin'>> | undefined;
      };
    },
    options?: Options,
  ): Promise<Issuer>;

  /** List identity providers */
  listIssuers(
    input?: {
      query?: {
        /** 1 to 200, default 50. */
        limit?: number | undefined;
        /** From the previous answer. */
        cursor?: string | undefined;
      };
    },
    options?: Options,
  ): Promise<{
    items: Issuer[];
    /** Present when there may be more: ask again with it. */
    cursor?: string | undefined;
  }>;

  /** Remove an identity provider */
  removeIssuer(
    input: {
      path: {
        issuer: string;
      };
    },
    options?: Options,
  ): Promise<Issuer>;

  /** Make a webhook */
  createWebhook(
    input: {
      body: {
        /** https only, at a public address. Every reader of webhooks sees it in full. */
        url: string;
        /** `*`, types of the catalogue, or groups such as `dev.isthmus.peering.*`; `peering.*` is short for it. */
        types?: readonly string[] | undefined;
        description?: string | undefined;
      };
    },
    options?: Options,
  ): Promise<{
    webhook: Webhook;
    /** whsec_…, as Standard Webhooks has it. Shown once. */
    secret: string;
  }>;

  /** List webhooks */
  listWebhooks(
    input?: {
      query?: {
        /** 1 to 200, default 50. */
        limit?: number | undefined;
        /** From the previous answer. */
        cursor?: string | undefined;
      };
    },
    options?: Options,
  ): Promise<{
    items: Webhook[];
    /** Present when there may be more: ask again with it. */
    cursor?: string | undefined;
  }>;

  /** Read one webhook */
  getWebhook(
    input: {
      path: {
        webhook: string;
      };
    },
    options?: Options,
  ): Promise<Webhook>;

  /** Change a webhook, or switch it off or on */
  changeWebhook(
    input: {
      path: {
        webhook: string;
      };
      body: {
        /** https only, at a public address. Every reader of webhooks sees it in full. */
        url?: string | undefined;
        /** `*`, types of the catalogue, or groups such as `dev.isthmus.peering.*`; `peering.*` is short for it. */
        types?: readonly string[] | undefined;
        description?: string | undefined;
        enabled?: boolean | undefined;
      };
    },
    options?: Options,
  ): Promise<Webhook>;

  /** Delete a webhook */
  deleteWebhook(
    input: {
      path: {
        webhook: string;
      };
    },
    options?: Options,
  ): Promise<Webhook>;

  /** Replace the secret of a webhook */
  rotateWebhook(
    input: {
      path: {
        webhook: string;
      };
      body: {
        /** How long the old secret signs as well. */
        overlapSeconds?: number | undefined;
      };
    },
    options?: Options,
  ): Promise<{
    webhook: Webhook;
    /** whsec_…, as Standard Webhooks has it. Shown once. */
    secret: string;
  }>;

  /** Send a test event to a webhook */
  testWebhook(
    input: {
      path: {
        webhook: string;
      };
    },
    options?: Options,
  ): Promise<WebhookDelivery>;

  /** Send the dead letters of a webhook again */
  replayWebhook(
    input: {
      path: {
        webhook: string;
      };
      body: {
        /** From the previous answer. */
        cursor?: string | undefined;
      };
    },
    options?: Options,
  ): Promise<{
    replayed: number;
    /** Present when there may be more: ask again with it. */
    cursor?: string | undefined;
  }>;

  /** List the deliveries of a webhook */
  listDeliveries(
    input: {
      path: {
        webhook: string;
      };
      query?: {
        /** 1 to 200, default 50. */
        limit?: number | undefined;
        /** From the previous answer. */
        cursor?: string | undefined;
        state?: 'pending' | 'delivered' | 'dead' | undefined;
      };
    },
    options?: Options,
  ): Promise<{
    items: WebhookDelivery[];
    /** Present when there may be more: ask again with it. */
    cursor?: string | undefined;
  }>;

  /** Read one delivery */
  getDelivery(
    input: {
      path: {
        webhook: string;
        delivery: string;
      };
      query?: {
        /** Seconds to wait for the outcome, at most 25. The answer is the state reached by then, or sooner where the broker waits less. Each second of waiting counts as a request; at the limit of the tenant the answer is the state as it is. */
        wait?: number | undefined;
      };
    },
    options?: Options,
  ): Promise<WebhookDelivery>;

  /** Send an event to a webhook again */
  replayDelivery(
    input: {
      path: {
        webhook: string;
        delivery: string;
      };
    },
    options?: Options,
  ): Promise<WebhookDelivery>;

  /** Make an event target */
  createEventTarget(
    input: {
      body: {
        /** Of an EventBridge bus or an SQS queue, also a FIFO queue. */
        arn: string;
        /** A role in the account of the target: it trusts `principal` with `externalId` and may write to the target. */
        roleArn: string;
        /** `*`, types of the catalogue, or groups such as `dev.isthmus.peering.*`; `peering.*` is short for it. */
        types?: readonly string[] | undefined;
        description?: string | undefined;
      };
    },
    options?: Options,
  ): Promise<EventTarget>;

  /** List event targets */
  listEventTargets(
    input?: {
      query?: {
        /** 1 to 200, default 50. */
        limit?: number | undefined;
        /** From the previous answer. */
        cursor?: string | undefined;
      };
    },
    options?: Options,
  ): Promise<{
    items: EventTarget[];
    /** Present when there may be more: ask again with it. */
    cursor?: string | undefined;
  }>;

  /** Read one event target */
  getEventTarget(
    input: {
      path: {
        target: string;
      };
    },
    options?: Options,
  ): Promise<EventTarget>;

  /** Change an event target, or switch it off or on */
  changeEventTarget(
    input: {
      path: {
        target: string;
      };
      body: {
        /** A role in the account of the target: it trusts `principal` with `externalId` and may write to the target. */
        roleArn?: string | undefined;
        /** `*`, types of the catalogue, or groups such as `dev.isthmus.peering.*`; `peering.*` is short for it. */
        types?: readonly string[] | undefined;
        description?: string | undefined;
        enabled?: boolean | undefined;
      };
    },
    options?: Options,
  ): Promise<EventTarget>;

  /** Delete an event target */
  deleteEventTarget(
    input: {
      path: {
        target: string;
      };
    },
    options?: Options,
  ): Promise<EventTarget>;

  /** Send a test event to an event target */
  testEventTarget(
    input: {
      path: {
        target: string;
      };
    },
    options?: Options,
  ): Promise<EventTargetDelivery>;

  /** Send the dead letters of an event target again */
  replayEventTarget(
    input: {
      path: {
        target: string;
      };
      body: {
        /** From the previous answer. */
        cursor?: string | undefined;
      };
    },
    options?: Options,
  ): Promise<{
    replayed: number;
    /** Present when there may be more: ask again with it. */
    cursor?: string | undefined;
  }>;

  /** List the deliveries of an event target */
  listTargetDeliveries(
    input: {
      path: {
        target: string;
      };
      query?: {
        /** 1 to 200, default 50. */
        limit?: number | undefined;
        /** From the previous answer. */
        cursor?: string | undefined;
        state?: 'pending' | 'delivered' | 'dead' | undefined;
      };
    },
    options?: Options,
  ): Promise<{
    items: EventTargetDelivery[];
    /** Present when there may be more: ask again with it. */
    cursor?: string | undefined;
  }>;

  /** Read one delivery to an event target */
  getTargetDelivery(
    input: {
      path: {
        target: string;
        delivery: string;
      };
      query?: {
        /** Seconds to wait for the outcome, at most 25. The answer is the state reached by then, or sooner where the broker waits less. Each second of waiting counts as a request; at the limit of the tenant the answer is the state as it is. */
        wait?: number | undefined;
      };
    },
    options?: Options,
  ): Promise<EventTargetDelivery>;

  /** Send an event to an event target again */
  replayTargetDelivery(
    input: {
      path: {
        target: string;
        delivery: string;
      };
    },
    options?: Options,
  ): Promise<EventTargetDelivery>;

  /** Is the broker up */
  getHealth(
    input?: Record<string, never>,
    options?: Options,
  ): Promise<{
    status: 'ok';
    version: string;
  }>;

  /** This document */
  getOpenApi(input?: Record<string, never>, options?: Options): Promise<Record<string, unknown>>;
}
