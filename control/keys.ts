/** The key layout of the store, all of it. Every partition begins with its tenant; the two `system/` partitions hold no tenant's data. */
import type { Key } from './ports/store.ts';

/** Fixed width, so that byte order is the order of time. */
export const sortableTime = (ms: number): string => String(Math.floor(ms)).padStart(15, '0');

export const partition = {
  /** Names of all tenants: for sweeps. */
  tenants: 'system/tenants',
  /** Positions, retries and dead letters of event subscribers. */
  bus: (subscriber: string): string => `system/bus/${subscriber}`,
  apiKeys: (tenant: string): string => `t/${tenant}/api-keys`,
  joinTokens: (tenant: string): string => `t/${tenant}/join-tokens`,
  clusters: (tenant: string): string => `t/${tenant}/clusters`,
  peerings: (tenant: string): string => `t/${tenant}/peerings`,
  /** Everything between the broker and one agent. */
  cluster: (tenant: string, clusterId: string): string => `t/${tenant}/cluster/${clusterId}`,
  due: (tenant: string): string => `t/${tenant}/due`,
  audit: (tenant: string): string => `t/${tenant}/audit`,
} as const;

export const key = {
  tenantName: (tenant: string): Key => ({ pk: partition.tenants, sk: tenant }),
  tenant: (tenant: string): Key => ({ pk: `t/${tenant}`, sk: 'tenant' }),
  apiKey: (tenant: string, id: string): Key => ({ pk: partition.apiKeys(tenant), sk: id }),
  /** By hash of the secret. */
  joinToken: (tenant: string, hash: string): Key => ({ pk: partition.joinTokens(tenant), sk: hash }),
  cluster: (tenant: string, id: string): Key => ({ pk: partition.clusters(tenant), sk: id }),
  /** Apart from the cluster, because it changes at every heartbeat. */
  seen: (tenant: string, id: string): Key => ({ pk: partition.cluster(tenant, id), sk: 'seen' }),
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
  desired: (tenant: string, clusterId: string, peering: string): Key => ({
    pk: partition.cluster(tenant, clusterId),
    sk: `desired/${peering}`,
  }),
  /** Counts the writes to the desired sets of a cluster. */
  revision: (tenant: string, clusterId: string): Key => ({ pk: partition.cluster(tenant, clusterId), sk: 'revision' }),
  asks: (tenant: string, clusterId: string): Key => ({ pk: partition.cluster(tenant, clusterId), sk: 'asks' }),
  /** When a peering is looked at next; apart from the peering, whose version is what users see as its ETag. */
  look: (tenant: string, peering: string): Key => ({ pk: `t/${tenant}/looks`, sk: peering }),
  due: (tenant: string, at: number, peering: string): Key => ({
    pk: partition.due(tenant),
    sk: `${sortableTime(at)}/${peering}`,
  }),
  audit: (tenant: string, at: number, id: string): Key => ({
    pk: partition.audit(tenant),
    sk: `${sortableTime(at)}/${id}`,
  }),
  idempotency: (tenant: string, hash: string): Key => ({ pk: `t/${tenant}/idempotency`, sk: hash }),
} as const;

export const prefix = {
  peeringsOfCluster: 'peering/',
  desired: 'desired/',
} as const;
