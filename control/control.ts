/** The control plane, put together: grouped use cases over the ports. Composition roots call this and nothing deeper. */
import { type Audit, createAudit } from './audit/audit.ts';
import { type Clusters, createClusters } from './clusters/clusters.ts';
import type { ControlDeps } from './deps.ts';
import { createFeed, type Feed } from './events/feed.ts';
import { createIdempotency, type Idempotency } from './idempotency/idempotency.ts';
import { createExchange, type Exchange } from './peerings/exchange.ts';
import { createPeerings, type Peerings } from './peerings/peerings.ts';
import { createTenants, type Tenants } from './tenants/tenants.ts';

export interface Control {
  readonly tenants: Tenants;
  readonly clusters: Clusters;
  readonly peerings: Peerings;
  readonly exchange: Exchange;
  readonly audit: Audit;
  readonly events: Feed;
  readonly idempotency: Idempotency;
  /** Delivers events and sweeps until the signal aborts: for a process that stays (local mode). In the cloud, schedules and streams do this. */
  run(signal: AbortSignal): Promise<void>;
}

export function createControl(deps: ControlDeps): Control {
  return {
    tenants: createTenants(deps),
    clusters: createClusters(deps),
    peerings: createPeerings(deps),
    exchange: createExchange(deps),
    audit: createAudit(deps),
    events: createFeed(deps),
    idempotency: createIdempotency(deps),
    run: () => Promise.reject(new Error('bodies follow')),
  };
}
