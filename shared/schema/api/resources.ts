/** What the REST API answers with (docs/design/principles.md#what-does-the-rest-api-promise): the OpenAPI document, the server's answers and the command line's reading come from these. */
import * as z from 'zod';
import { phases } from '#shared/domain/peering-phase.ts';
import { GivenLabels, GivenQuantities, OneClass } from '../definition/kubernetes-text.ts';
import { ClusterId, NetworkFacts, PolicyFacts, Quantities } from '../protocol/agent-protocol.ts';
import { NewPeeringNetwork, PeeringNetwork } from './network.ts';

const Time = z.iso.datetime().describe('RFC 3339, UTC.');

export const Cluster = z.object({
  name: ClusterId,
  state: z.enum(['joined', 'left']),
  online: z.boolean().describe('Not missing for three heartbeats, nor for two minutes since its doorbell closed.'),
  lastSeenAt: Time,
  joinedAt: Time,
  leftAt: Time.optional(),
  labels: z.record(z.string(), z.string()).describe('As the tenant gave them; no other tenant sees them.'),
  agentVersion: z.string(),
  kubernetesVersion: z.string(),
  apiServerUrl: z.string().describe('How peers reach its API server.'),
  podCidrs: z.array(z.string()),
  serviceCidrs: z.array(z.string()),
  nodes: z.int(),
  allocatable: Quantities,
  policies: z.array(PolicyFacts).describe('What the cluster agrees to.'),
  network: NetworkFacts.optional().describe('What its peers are told to be linked with it; absent: it makes no links.'),
  publicAddresses: z.array(z.string()).optional().describe('From which its agent was seen lately, the newest first.'),
  keyThumbprint: z.string().describe('RFC 7638 thumbprint of the key it enrolled with.'),
  version: z.int(),
});
export type Cluster = z.infer<typeof Cluster>;

export const JoinTokenAnswer = z.object({
  token: z.string().describe('Shown once. Works once.'),
  cluster: ClusterId,
  expiresAt: Time,
});
export type JoinTokenAnswer = z.infer<typeof JoinTokenAnswer>;

const PeeringPhase = z.enum(phases);

export const PeeringCondition = z.object({
  type: z.string(),
  status: z.enum(['True', 'False', 'Unknown']),
  reason: z.string(),
  message: z.string().describe('When it does not hold: what is missing.'),
  side: z.enum(['consumer', 'provider', 'both']),
  since: Time,
  action: z.string().describe('What a person can do about it; empty when there is nothing but waiting.'),
});
export type PeeringCondition = z.infer<typeof PeeringCondition>;

const PeeringAcross = z.object({
  side: z.enum(['consumer', 'provider']).describe('Which of the two clusters is yours.'),
  peerTenant: z.string().describe('The tenant of the other cluster.'),
  by: z.enum(['invitation', 'request']).describe("How the provider's tenant agreed."),
  limits: Quantities.describe('What the provider agreed to at most; what is not named is not limited by it.'),
  classes: z.array(z.string()).describe('Classes that the provider agreed to.'),
  lapsesAt: Time.describe('When it ends unless both clusters have agreed by then.'),
  endedBy: z.enum(['consumer', 'provider']).optional().describe('The side that unpeered.'),
});

export const Peering = z.object({
  id: z.string(),
  consumer: ClusterId,
  provider: ClusterId,
  resources: Quantities.describe('What was asked for.'),
  class: z.string(),
  labels: z.record(z.string(), z.string()).describe('As the tenant gave them; no other tenant sees them.'),
  phase: PeeringPhase,
  conditions: z.array(PeeringCondition),
  waitingFor: z.string().describe('One sentence: what is being waited for, or that nothing is.'),
  granted: Quantities.optional().describe('What the provider granted.'),
  network: PeeringNetwork.optional().describe('Absent: made before there was any.'),
  nodeName: z.string().describe('The virtual node in the consumer.'),
  createdAt: Time,
  phaseSince: z.partialRecord(PeeringPhase, Time).describe('When each phase was first entered.'),
  unpeerRequestedAt: Time.optional(),
  leftBehind: z.array(z.string()).describe('What could not be removed because a side was dead.'),
  warnings: z
    .array(z.object({ side: z.enum(['consumer', 'provider']), message: z.string() }))
    .optional()
    .describe('Fields of what your clusters report that do not have their form and were left out. Absent: none.'),
  across: PeeringAcross.optional().describe('Present when the other cluster is of another tenant.'),
  owner: z
    .object({
      kind: z.enum(['object', 'broker']),
      name: z.string().optional().describe('Of the Peering object in the consumer.'),
    })
    .describe(
      'The only writer of its terms: a Peering object in the consumer cluster, or this API. Either may end it.',
    ),
  version: z.int(),
});
export type Peering = z.infer<typeof Peering>;

/** CloudEvents 1.0, structured JSON. What each type carries in `data` is in docs/events.md. */
export const FeedEvent = z.object({
  specversion: z.literal('1.0'),
  id: z.string().describe('Unique; the same event has the same id in the feed and at every webhook.'),
  source: z.string().describe('The broker and the tenant whose event it is.'),
  type: z.string().describe('`dev.isthmus.SUBJECT.WHAT.vN`; a change that readers could not bear gets a new N.'),
  subject: z.string().describe('What it is about, for example `peering/pe_…`.'),
  time: Time,
  datacontenttype: z.literal('application/json'),
  data: z.record(z.string(), z.unknown()),
});
export type FeedEvent = z.infer<typeof FeedEvent>;

export const AuditRecord = z.object({
  id: z.string(),
  at: Time,
  principal: z.string().describe('The actor: `api-key/…`, `cluster/…` or `system`.'),
  from: z.string().describe('Network address of the caller.'),
  requestId: z.string(),
  action: z.string(),
  subject: z.string(),
  before: z.unknown().optional(),
  after: z.unknown().optional(),
});
export type AuditRecord = z.infer<typeof AuditRecord>;

export const Role = z.enum(['viewer', 'operator', 'admin']);

export const ApiKey = z.object({
  id: z.string(),
  name: z.string(),
  prefix: z.string().describe('The beginning of the key, to recognise it by.'),
  role: Role,
  scopes: z.array(z.string()).optional().describe('Absent: everything the role allows.'),
  createdAt: Time,
  expiresAt: Time.optional(),
  revokedAt: Time.optional(),
  replacedBy: z.string().optional(),
  lastUsedAt: Time.optional().describe('To the hour.'),
});
export type ApiKey = z.infer<typeof ApiKey>;

export const IssuedApiKey = z.object({ key: ApiKey, secret: z.string().describe('Shown once and stored nowhere.') });
export type IssuedApiKey = z.infer<typeof IssuedApiKey>;

export const Me = z.object({
  tenant: z.string(),
  principal: z.string(),
  role: Role,
  scopes: z.array(z.string()).optional(),
});
export type Me = z.infer<typeof Me>;

export const Health = z.object({ status: z.literal('ok'), version: z.string() });

const page = <T extends z.ZodType>(item: T) =>
  z.object({
    items: z.array(item),
    cursor: z.string().optional().describe('Present when there may be more: ask again with it.'),
  });
export const ClusterPage = page(Cluster);
export const PeeringPage = page(Peering);
export const AuditPage = page(AuditRecord);
export const ApiKeyPage = page(ApiKey);
export const EventPage = z.object({
  items: z.array(FeedEvent),
  cursor: z.string().describe('Always present: ask again with it to follow the feed.'),
  listenUrl: z
    .url({ protocol: /^wss$/ })
    .optional()
    .describe('The WebSocket that says when there is something new. Absent: at `/v1/agent/connect` of the broker.'),
});

export const ClusterChange = z.object({ labels: GivenLabels.describe('All that it is to have.') });

export const NewJoinToken = z.object({
  cluster: ClusterId,
  replaceKey: z
    .boolean()
    .optional()
    .describe(
      'The cluster has joined, has lost its key, and may enrol with another one. Its peers still have to agree to that key.',
    ),
});

export const NewPeering = z.object({
  consumer: ClusterId,
  provider: ClusterId,
  resources: GivenQuantities.default({}).describe('Absent members are limited by the provider alone.'),
  class: OneClass.optional(),
  network: NewPeeringNetwork.optional(),
  labels: GivenLabels.optional().describe('All that it is to have. Absent: a peering that is there keeps its own.'),
});

export const PeeringChange = z.object({ labels: GivenLabels.describe('All that it is to have.') });

export const NewApiKey = z.object({
  name: z.string().min(1).max(100),
  role: Role,
  scopes: z.array(z.string()).min(1).optional(),
  expiresInSeconds: z
    .int()
    .min(60)
    .max(10 * 365 * 86_400)
    .optional(),
});

export const RotateApiKey = z.object({
  overlapSeconds: z
    .int()
    .min(0)
    .max(30 * 86_400)
    .default(0)
    .describe('How long the old secret keeps working.'),
});

/** RFC 9457. */
export const Problem = z.object({
  type: z.string(),
  title: z.string(),
  status: z.int(),
  detail: z.string(),
  code: z.string().describe('Stable; see the error table.'),
  requestId: z.string(),
  retryable: z.boolean(),
  remedy: z.string(),
  errors: z
    .array(z.object({ field: z.string(), message: z.string(), value: z.unknown().optional() }))
    .optional()
    .describe('One entry per refused field.'),
});
export type Problem = z.infer<typeof Problem>;
