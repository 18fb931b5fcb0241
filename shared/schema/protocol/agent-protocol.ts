/**
 * What agents and broker say to each other under `/v1/agent` (docs/design/principles.md#what-do-the-agent-and-the-broker-say-to-each-other). Everything is level-triggered: a batch of observations or a
 * desired set replaces what was said before about the same peering, and may be repeated or lost.
 */
import * as z from 'zod';
import { mostSamplesInReport, ReportedSamples } from './samples.ts';

/**
 * History; recorded sessions of each are in `test/contract/recordings`.
 * 1: the first. Agents report at least every 30 s and ping every 25 s, regardless of the poll interval they are given, and every ping is answered.
 * 2: the broker says how often it wants to hear of an agent and how often to ask without a doorbell; a ping says what the agent knows and is
 *    answered when the broker knows better or when it asks for an answer; `POST ack`, which no agent ever sent, is gone.
 *
 * Both sides ignore fields they do not know, and speak with every version from `oldestProtocolVersion` on.
 */
export const protocolVersion = 2;
export const oldestProtocolVersion = Math.max(1, protocolVersion - 2);

/** What the broker wants of an agent from now on; in every answer since version 2. */
/** Once a day: a number from a broken broker must not silence an agent for years. */
const longestIntervalSeconds = 86_400;
const intervals = {
  heartbeatSeconds: z
    .int()
    .min(1)
    .max(longestIntervalSeconds)
    .optional()
    .describe('How often to be heard of when nothing changes: shorter while peerings are made or ended.'),
  pollSeconds: z
    .int()
    .min(1)
    .max(longestIntervalSeconds)
    .optional()
    .describe('How often to ask for news without a doorbell.'),
  protocolVersion: z.int().min(1).optional().describe('Of the broker. Absent: 1.'),
};
export interface Intervals {
  readonly heartbeatSeconds: number;
  readonly pollSeconds: number;
}

export const ClusterId = z
  .string()
  .max(63)
  .regex(
    /^[a-z0-9]([-a-z0-9]*[a-z0-9])?$/,
    'must be a DNS-1123 label: lower-case letters, digits and -, at most 63 characters',
  )
  .describe('The name peers know a cluster by.');

export const Quantities = z.record(z.string(), z.string()).describe('Resource name to Kubernetes quantity.');

/** What one PeeringPolicy object lets the broker know, so that refusals come early. The cluster itself enforces it again. */
export const PolicyFacts = z.object({
  name: z.string(),
  tenants: z
    .array(z.string())
    .optional()
    .describe("Accounts at the broker that it is about; `*` for all. Absent: only the cluster's own."),
  asConsumer: z.object({
    enabled: z.boolean(),
    autoAccept: z.boolean(),
    peers: z.array(z.string()).describe('Cluster IDs; `*` for all.'),
  }),
  asProvider: z.object({
    enabled: z.boolean(),
    autoAccept: z.boolean(),
    peers: z.array(z.string()),
    maxResourcesPerPeer: Quantities,
    classes: z.array(z.string()),
  }),
  network: z
    .object({
      enabled: z.boolean(),
      remoteCidrs: z.array(z.string()).describe('Ranges within which those of a peer must lie; empty: any.'),
    })
    .optional()
    .describe('Links to peers. Absent: allowed.'),
});
export type PolicyFacts = z.infer<typeof PolicyFacts>;

/** What a peer must know to be linked with this cluster. */
export const NetworkFacts = z.object({
  podCidrs: z.array(z.string()).describe('What pods really have.'),
  externalCidrs: z
    .array(z.string())
    .describe('From which addresses are given to what is no pod; the first one counts.'),
  nodeAddresses: z.array(z.string()).describe('Where a NodePort may be reached, the likeliest first.'),
  loadBalancer: z
    .boolean()
    .optional()
    .describe('Whether Services of type LoadBalancer get an address. Absent: not known.'),
  apiServerProxy: z
    .string()
    .optional()
    .describe('address:port, of the external range, at which peers reach the API server through the link.'),
});
export type NetworkFacts = z.infer<typeof NetworkFacts>;

/** Among `ClusterFacts.capabilities`: the agent makes links to peers. `ClusterFacts.network` is there as well. */
export const networkCapability = 'network';

/** A cluster as its agent describes it; sent at enrolment and whenever it changes. */
export const ClusterFacts = z.object({
  agentVersion: z.string(),
  protocolVersion: z.int().min(1),
  capabilities: z.array(z.string()),
  kubernetesVersion: z.string(),
  apiServerUrl: z.url().describe('How peers reach the API server.'),
  apiServerCa: z.string().describe('PEM bundle.'),
  podCidrs: z.array(z.string()),
  serviceCidrs: z.array(z.string()),
  nodes: z.int().min(0),
  allocatable: Quantities.describe('Sum over schedulable, non-virtual nodes.'),
  policies: z.array(PolicyFacts),
  network: NetworkFacts.optional().describe('Absent: the agent makes no links, or not yet.'),
  consents: z
    .array(z.object({ peer: z.string(), roles: z.array(z.enum(['consumer', 'provider'])) }))
    .optional()
    .describe(
      'Peers to which an administrator of this cluster has agreed, with the roles of this cluster. Absent: none.',
    ),
});
export type ClusterFacts = z.infer<typeof ClusterFacts>;

export const PeeringRole = z.enum(['consumer', 'provider']);
export type PeeringRole = z.infer<typeof PeeringRole>;

/**
 * One object of a peering as it is in the cluster. `data` is a closed, per-kind selection made by the agent (`observed` in `agent/broker/kinds/`):
 * never private keys, tokens or kubeconfigs. Its fields are those of `observed-data.ts`, by which the broker reads them one by one: an agent
 * of another version may have others.
 */
export const ObservedObject = z.object({
  apiVersion: z.string(),
  kind: z.string(),
  namespace: z.string().optional(),
  name: z.string(),
  uid: z.string(),
  generation: z.int().optional(),
  deleting: z.boolean().optional(),
  data: z.record(z.string(), z.unknown()),
  unfit: z
    .array(z.object({ field: z.string(), value: z.string(), accepted: z.string() }))
    .optional()
    .describe('What the cluster has in fields of `data` and the agent left out, since it does not have their form.'),
});
/** An agent tells no more than so many of one object. */
export const mostUnfit = 8;
export type ObservedObject = z.infer<typeof ObservedObject>;

export const Refusal = z.object({
  object: z.string().describe('Kind/namespace/name'),
  code: z.string(),
  message: z.string(),
});

export const longestAnnouncement = 8_192;

/** All that exists in one cluster for one peering. */
export const ObservedSet = z.object({
  peering: z.string(),
  role: PeeringRole,
  /** Revision of the desired set that these observations already include. */
  appliedRevision: z.int().min(0),
  objects: z.array(ObservedObject),
  refusals: z.array(Refusal),
  /** A user of the cluster ended the peering there by deleting its ResourceSlice, Identity or Tenant. */
  ended: z.boolean().optional(),
  announcement: z
    .string()
    .max(longestAnnouncement)
    .optional()
    .describe('What this cluster says of itself to the peer, signed by its key. The broker passes it on as it is.'),
});
export type ObservedSet = z.infer<typeof ObservedSet>;

/** Whose terms hold where a `Peering` object and the broker's API differ. */
export const PeeringOwner = z.enum(['Object', 'Broker']);
export type PeeringOwner = z.infer<typeof PeeringOwner>;

/** A `Peering` object made inside the cluster, asking the broker for a peering with this cluster as consumer. */
export const PeeringAsk = z.object({
  name: z.string(),
  uid: z.string(),
  generation: z.int(),
  provider: ClusterId,
  resources: Quantities,
  class: z.string(),
  network: z
    .object({
      enabled: z.boolean().optional(),
      gatewayLocation: PeeringRole.optional(),
      mtu: z.int().optional(),
      serviceType: z.enum(['LoadBalancer', 'NodePort', 'ClusterIP']).optional(),
      inBand: z.boolean().optional(),
    })
    .optional(),
  owner: PeeringOwner.optional().describe('Absent: Object.'),
  deleting: z.boolean(),
});
export type PeeringAsk = z.infer<typeof PeeringAsk>;

export const ObservedBatch = z.object({
  /** Present when the facts changed since the last acknowledged batch, and on the first after a start. */
  facts: ClusterFacts.optional(),
  sets: z.array(ObservedSet),
  /** Absent: unchanged. Present: all that exist. */
  asks: z.array(PeeringAsk).optional(),
  samples: ReportedSamples.optional().describe(
    `Of peerings in \`sets\`: whole minutes that were not reported yet, at most ${mostSamplesInReport} in all.`,
  ),
});
export type ObservedBatch = z.infer<typeof ObservedBatch>;

export const ObservedAnswer = z.object({
  revision: z.int().min(0).describe('The newest desired revision.'),
  doorbellUrl: z
    .url({ protocol: /^wss$/ })
    .optional()
    .describe(
      'Where the WebSocket is. Absent: at `/v1/agent/connect` of the broker. Either way that is the path that is signed for.',
    ),
  ...intervals,
});
export type ObservedAnswer = z.infer<typeof ObservedAnswer>;

export const KubeManifest = z.looseObject({
  apiVersion: z.string(),
  kind: z.string(),
  metadata: z.looseObject({
    name: z.string(),
    namespace: z.string().optional(),
    labels: z.record(z.string(), z.string()).optional(),
    annotations: z.record(z.string(), z.string()).optional(),
  }),
});
export type KubeManifest = z.infer<typeof KubeManifest>;

/** All that the broker wants to exist in one cluster for one peering. The agent applies `objects`, deletes what it applied before and no longer finds here. */
export const DesiredSet = z.object({
  peering: z.string(),
  role: PeeringRole,
  peer: ClusterId,
  /** The peer's account at the broker. Absent: this cluster's own. */
  peerTenant: z.string().optional(),
  /** Monotonic within the cluster: the revision of the write that produced this set. */
  revision: z.int().min(1),
  requestId: z
    .string()
    .max(100)
    .optional()
    .describe('Of the request at the broker that this follows from, for the log. Absent: the broker itself did it.'),
  /** `absent`: remove everything of this peering, then report an empty observed set. */
  state: z.enum(['present', 'absent']),
  /**
   * The peer is known to be gone for good or unreachable past the deadline: finish removal without waiting for it (finalizers that wait
   * for the peer are released).
   */
  peerDead: z.boolean(),
  objects: z.array(KubeManifest),
  announcement: z
    .string()
    .max(longestAnnouncement)
    .optional()
    .describe('What the peer says of itself, as its agent signed it. Absent: the broker has none yet.'),
});
export type DesiredSet = z.infer<typeof DesiredSet>;

/** What the broker says about a PeeringAsk, mirrored into `Peering.status`. */
export const AskAnswer = z.object({
  name: z.string(),
  uid: z.string(),
  observedGeneration: z.int(),
  peering: z.string().optional(),
  phase: z.string(),
  owner: PeeringOwner.optional(),
  conditions: z.array(
    z.object({
      type: z.string(),
      status: z.enum(['True', 'False', 'Unknown']),
      reason: z.string(),
      message: z.string(),
      lastTransitionTime: z.string(),
    }),
  ),
});

/** Answer to `GET desired?after=REV`: sets changed since REV; all of them when `full`. */
export const DesiredAnswer = z.object({
  revision: z.int().min(0),
  full: z.boolean(),
  sets: z.array(DesiredSet),
  answers: z.array(AskAnswer),
  ...intervals,
});
export type DesiredAnswer = z.infer<typeof DesiredAnswer>;

/** Frames of the WebSocket. It carries doorbells only; missing all of them costs latency, never correctness. */
export const ServerFrame = z.discriminatedUnion('type', [
  z.object({ type: z.literal('desired'), revision: z.int() }),
  z.object({ type: z.literal('pong'), revision: z.int().min(0).optional(), ...intervals }),
]);
/** Since version 2 a ping says what its agent knows. A broker that knows nothing newer need not answer, unless `answer` asks for it. */
export const AgentFrame = z.object({
  type: z.literal('ping'),
  revision: z.int().min(0).optional(),
  heartbeatSeconds: z.int().min(1).optional(),
  answer: z.boolean().optional(),
});
export type AgentFrame = z.infer<typeof AgentFrame>;
