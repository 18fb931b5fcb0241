/** The key layout of the store, all of it. Every partition begins with its tenant; the `system/` partitions hold no tenant's data but what it publishes. */
import { type Key, withPrefix } from '../ports/store.ts';

/** Fixed width, so that byte order is the order of time. */
export const sortableTime = (ms: number): string => String(Math.floor(ms)).padStart(15, '0');

/** Looks at peerings, asks and requests; deliveries to webhooks and event targets. */
export type DueIndex = 'looks' | 'deliveries';

/** What a tenant's limits count. */
export type Counted = 'clusters' | 'peerings';

/** What audit records are looked up by; first what the fewest of them have in common. */
export const auditFields = ['subject', 'principal', 'action'] as const;
export type AuditField = (typeof auditFields)[number];

export type Labelled = 'cluster' | 'peering';

/** Each takes 1,000 writes a second in DynamoDB. May only grow: a sweep asks these and no others. */
export const dueShards = 4;

/**
 * What all tenants publish is read by all of them, as often as they like: eight partitions answer 24,000 half pages of 4 KB a second in DynamoDB. Another
 * number needs the entries to be moved.
 */
export const directoryShards = 8;

/** What one tenant has lies in all shards, what comes due for one peering or receiver, or is published of one cluster, in one. */
function shardOf(tenant: string, id: string, shards: number): number {
  let hash = 0;
  for (const letter of `${tenant}/${id}`) hash = (Math.imul(hash, 31) + letter.charCodeAt(0)) >>> 0;
  // The last bits of such a sum depend on the last letters only.
  return ((hash ^ (hash >>> 15)) >>> 0) % shards;
}

/** Begins all sort keys of one cluster in `partition.heard`. Before every letter that an id may have, so that they lie in the order of the ids. */
const heardOf = (id: string): string => `${id}!`;

export const partition = {
  /** Names of all tenants: for operators. */
  tenants: 'system/tenants',
  /** Names of tenants that are being deleted. */
  deleting: 'system/deleting',
  /** Whose time comes, of all tenants: a sweep reads what is due and no tenant for which nothing is. */
  due: (index: DueIndex, shard: number): string => `system/due-${index}/${shard}`,
  /** Positions, retries and dead letters of event subscribers. */
  bus: (subscriber: string): string => `system/bus/${subscriber}`,
  /** Keys of the operators of the deployment, by id. */
  operators: 'system/operators',
  /** Tenants that were deleted: their names are never given again. */
  tombstones: 'system/tombstones',
  apiKeys: (tenant: string): string => `t/${tenant}/api-keys`,
  joinTokens: (tenant: string): string => `t/${tenant}/join-tokens`,
  clusters: (tenant: string): string => `t/${tenant}/clusters`,
  peerings: (tenant: string): string => `t/${tenant}/peerings`,
  /** Everything between the broker and one agent, but for what is in `heard`. */
  cluster: (tenant: string, clusterId: string): string => `t/${tenant}/cluster/${clusterId}`,
  /**
   * What each request of an agent reads: when it was last heard, and the revision of what it should have. Of all clusters of the tenant in the order of their
   * ids, so that one query reads it for one cluster and one for a page of them. One read unit for each request of an agent: a tenant within its default limits
   * of 500 a second uses 500 of the 3,000 that DynamoDB gives a partition.
   */
  heard: (tenant: string): string => `t/${tenant}/heard`,
  looks: (tenant: string): string => `t/${tenant}/looks`,
  audit: (tenant: string): string => `t/${tenant}/audit`,
  /**
   * Where audit records are found by subject, principal and action. Three items for each record, six write units: a tenant within its default limits of 50
   * requests a second uses 300 of the 1,000 that DynamoDB gives a partition.
   */
  auditBy: (tenant: string): string => `t/${tenant}/audit-by`,
  /** Which clusters and peerings have a label. */
  labels: (tenant: string): string => `t/${tenant}/labels`,
  /** Peerings between a provider's tenant and a consumer's tenant: what the state machine knows, for neither tenant to read. */
  shared: (provider: string, consumer: string): string => `t/${provider}/with/${consumer}`,
  invitations: (tenant: string): string => `t/${tenant}/invitations`,
  /** Requests that wait for this tenant, and those that it made at others. */
  inbox: (tenant: string): string => `t/${tenant}/inbox`,
  sentRequests: (tenant: string): string => `t/${tenant}/sent-requests`,
  approvalRules: (tenant: string): string => `t/${tenant}/approval-rules`,
  /** Which clusters the tenant publishes. */
  directory: (tenant: string): string => `t/${tenant}/directory`,
  /** What tenants chose to show to everybody, and nothing else: the one list that all tenants read. */
  published: (shard: number): string => `system/directory/${shard}`,
  members: (tenant: string): string => `t/${tenant}/members`,
  issuers: (tenant: string): string => `t/${tenant}/issuers`,
  /** Where events go: webhooks and event targets. */
  webhooks: (tenant: string): string => `t/${tenant}/webhooks`,
  /** What was or will be sent, by receiver and event. */
  deliveries: (tenant: string): string => `t/${tenant}/webhook-deliveries`,
  /** What is to be sent next, by receiver and time. */
  deliveriesDue: (tenant: string): string => `t/${tenant}/webhook-due`,
  /** How many live clusters and peerings there are. */
  counts: (tenant: string): string => `t/${tenant}/counts`,
  /** What each process admitted in each minute. */
  rate: (tenant: string): string => `t/${tenant}/rate`,
} as const;

export const key = {
  tenantName: (tenant: string): Key => ({ pk: partition.tenants, sk: tenant }),
  tenant: (tenant: string): Key => ({ pk: `t/${tenant}`, sk: 'tenant' }),
  deleting: (tenant: string): Key => ({ pk: partition.deleting, sk: tenant }),
  /** Where a sweep that ran out of time stopped; before all times, so that it is read with the first of them. */
  stopped: (index: DueIndex, shard: number): Key => ({ pk: partition.due(index, shard), sk: '!stopped' }),
  operator: (id: string): Key => ({ pk: partition.operators, sk: id }),
  tombstone: (tenant: string): Key => ({ pk: partition.tombstones, sk: tenant }),
  member: (tenant: string, id: string): Key => ({ pk: partition.members(tenant), sk: id }),
  /** Which member an identity is; by hash, because subjects and addresses may hold anything. */
  identity: (tenant: string, hash: string): Key => ({ pk: `t/${tenant}/identities`, sk: hash }),
  issuer: (tenant: string, id: string): Key => ({ pk: partition.issuers(tenant), sk: id }),
  webhook: (tenant: string, id: string): Key => ({ pk: partition.webhooks(tenant), sk: id }),
  /** There while a webhook or event target fails; apart from it, because it changes without anybody changing it. */
  webhookFailing: (tenant: string, id: string): Key => ({ pk: `t/${tenant}/webhook-failing`, sk: id }),
  delivery: (tenant: string, webhook: string, event: string): Key => ({
    pk: partition.deliveries(tenant),
    sk: `${webhook}/${event}`,
  }),
  deliveryDue: (tenant: string, webhook: string, at: number, event: string): Key => ({
    pk: partition.deliveriesDue(tenant),
    sk: `${webhook}/${sortableTime(at)}/${event}`,
  }),
  /** Beside `deliveryDue`, for sweeps. */
  receiverDue: (tenant: string, receiver: string, at: number, event: string): Key => ({
    pk: partition.due('deliveries', shardOf(tenant, receiver, dueShards)),
    sk: `${sortableTime(at)}/${tenant}/${receiver}/${event}`,
  }),
  rate: (tenant: string, kind: string, minute: number, process: string): Key => ({
    pk: partition.rate(tenant),
    sk: `${kind}/${sortableTime(minute)}/${process}`,
  }),
  count: (tenant: string, what: Counted): Key => ({ pk: partition.counts(tenant), sk: what }),
  /** When a key was last used; apart from the key, because it changes without anybody changing it. */
  apiKeyUse: (tenant: string, id: string): Key => ({ pk: `t/${tenant}/api-key-use`, sk: id }),
  /** A wish to delete the tenant that waits for its confirmation. */
  deletion: (tenant: string): Key => ({ pk: `t/${tenant}`, sk: 'deletion' }),
  apiKey: (tenant: string, id: string): Key => ({ pk: partition.apiKeys(tenant), sk: id }),
  /** By hash of the secret. */
  joinToken: (tenant: string, hash: string): Key => ({ pk: partition.joinTokens(tenant), sk: hash }),
  cluster: (tenant: string, id: string): Key => ({ pk: partition.clusters(tenant), sk: id }),
  /** Apart from the cluster, because it changes at every heartbeat. */
  seen: (tenant: string, id: string): Key => ({ pk: partition.heard(tenant), sk: `${heardOf(id)}seen` }),
  /** A signed request that was accepted, by hash of its `jti`. */
  spent: (tenant: string, id: string, hash: string): Key => ({ pk: `t/${tenant}/spent/${id}`, sk: hash }),
  peering: (tenant: string, id: string): Key => ({ pk: partition.peerings(tenant), sk: id }),
  /** Which peering a pair has. */
  pair: (tenant: string, consumer: string, provider: string): Key => ({
    pk: `t/${tenant}/pairs`,
    sk: `${consumer}/${provider}`,
  }),
  peeringOf: (tenant: string, clusterId: string, id: string): Key => ({
    pk: partition.cluster(tenant, clusterId),
    sk: `peering/${id}`,
  }),
  observed: (tenant: string, clusterId: string, peering: string): Key => ({
    pk: partition.cluster(tenant, clusterId),
    sk: `observed/${peering}`,
  }),
  /** An hour of samples of one end of a peering. */
  samples: (tenant: string, clusterId: string, peering: string, hour: number): Key => ({
    pk: partition.cluster(tenant, clusterId),
    sk: `${prefix.samples(peering)}${sortableTime(hour)}`,
  }),
  desired: (tenant: string, clusterId: string, peering: string): Key => ({
    pk: partition.cluster(tenant, clusterId),
    sk: `desired/${peering}`,
  }),
  /** Counts the writes to the desired sets of a cluster. */
  revision: (tenant: string, clusterId: string): Key => ({
    pk: partition.heard(tenant),
    sk: `${heardOf(clusterId)}revision`,
  }),
  asks: (tenant: string, clusterId: string): Key => ({ pk: partition.cluster(tenant, clusterId), sk: 'asks' }),
  /** When a peering is looked at next; apart from the peering, whose version is what users see as its ETag. */
  look: (tenant: string, peering: string): Key => ({ pk: partition.looks(tenant), sk: peering }),
  due: (tenant: string, at: number, id: string): Key => ({
    pk: partition.due('looks', shardOf(tenant, id, dueShards)),
    sk: `${sortableTime(at)}/${tenant}/${id}`,
  }),
  audit: (tenant: string, at: number, id: string): Key => ({
    pk: partition.audit(tenant),
    sk: `${sortableTime(at)}/${id}`,
  }),
  /** `hash`: of field and value, which may hold any letter. */
  auditBy: (tenant: string, hash: string, at: number, id: string): Key => ({
    pk: partition.auditBy(tenant),
    sk: `${hash}/${sortableTime(at)}/${id}`,
  }),
  /** `label`: `name=value`. No name has an equals sign, no value a slash. */
  label: (tenant: string, kind: Labelled, label: string, id: string): Key => ({
    pk: partition.labels(tenant),
    sk: `${kind}/${label}/${id}`,
  }),
  sharedPeering: (provider: string, consumer: string, id: string): Key => ({
    pk: partition.shared(provider, consumer),
    sk: `peering/${id}`,
  }),
  /** Which tenant's cluster goes by that name among the peers of this cluster. Of peers of other tenants only. */
  peer: (tenant: string, clusterId: string, peer: string): Key => ({
    pk: partition.cluster(tenant, clusterId),
    sk: `peer/${peer}`,
  }),
  invitation: (tenant: string, id: string): Key => ({ pk: partition.invitations(tenant), sk: id }),
  inbox: (tenant: string, id: string): Key => ({ pk: partition.inbox(tenant), sk: id }),
  sentRequest: (tenant: string, id: string): Key => ({ pk: partition.sentRequests(tenant), sk: id }),
  /** The one request of a pair of clusters that may be open. */
  openRequest: (provider: string, consumer: string, pair: string): Key => ({
    pk: `t/${provider}/open-requests/${consumer}`,
    sk: pair,
  }),
  approvalRules: (tenant: string): Key => ({ pk: partition.approvalRules(tenant), sk: 'all' }),
  directory: (tenant: string, clusterId: string): Key => ({ pk: partition.directory(tenant), sk: clusterId }),
  published: (tenant: string, clusterId: string): Key => ({
    pk: partition.published(shardOf(tenant, clusterId, directoryShards)),
    sk: `${tenant}/${clusterId}`,
  }),
  idempotency: (tenant: string, hash: string): Key => ({ pk: `t/${tenant}/idempotency`, sk: hash }),
} as const;

/** The bounds of what `partition.heard` has of the clusters from one to the other, both included. */
export const heardBetween = (first: string, last: string): { readonly from: string; readonly to: string } => ({
  from: heardOf(first),
  to: withPrefix(heardOf(last)).to,
});

export const prefix = {
  peeringsOfCluster: 'peering/',
  desired: 'desired/',
  samples: (peering: string): string => `hours/${peering}/`,
} as const;
