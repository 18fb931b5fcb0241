/** The control plane, put together: grouped use cases over the ports. Composition roots call this and nothing deeper. */
import { type Audit, createAudit } from './audit/audit.ts';
import { type Clusters, createClusters } from './clusters/clusters.ts';
import type { ControlDeps } from './deps.ts';
import { createFeed, type Feed } from './events/feed.ts';
import { peeringTrigger } from './events/peering-trigger.ts';
import { createIdempotency, type Idempotency } from './idempotency/idempotency.ts';
import { createAsks } from './peerings/asks.ts';
import { createCoordinator } from './peerings/coordinate.ts';
import { createExchange, type Exchange } from './peerings/exchange.ts';
import { createPeerings, type Peerings } from './peerings/peerings.ts';
import { createRequests } from './peerings/request-peering.ts';
import type { EventBus } from './ports/event-bus.ts';
import type { Store } from './ports/store.ts';
import { createRunner } from './run-control.ts';
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

export function createControl(given: ControlDeps): Control {
  const deps: ControlDeps = given.bus ? { ...given, store: waking(given.store, given.bus) } : given;
  const runner = createRunner(deps, () => peerings);
  const coordinator = createCoordinator({ ...deps, onDue: runner.onDue });
  const requests = createRequests(deps, coordinator);
  const asks = createAsks({ ...deps, onDue: runner.onDue }, requests);
  const peerings = createPeerings(deps, { coordinator, requests, asks });
  deps.bus?.subscribe(peeringTrigger(coordinator));
  return {
    tenants: createTenants(deps),
    clusters: createClusters(deps, coordinator),
    peerings,
    exchange: createExchange(deps, { coordinator, asks }),
    audit: createAudit(deps),
    events: createFeed(deps),
    idempotency: createIdempotency(deps),
    run: runner.run,
  };
}

/** Every commit that carries events tells the bus so. */
const waking = (store: Store, bus: EventBus): Store => ({
  get: (pk, sk, signal) => store.get(pk, sk, signal),
  query: (query, signal) => store.query(query, signal),
  async transact(ops, events, signal) {
    await store.transact(ops, events, signal);
    if (events && events.length > 0) bus.wake();
  },
  outbox: (after, limit, stream, signal) => store.outbox(after, limit, stream, signal),
  newestCursor: (signal) => store.newestCursor(signal),
  sweep: (signal) => store.sweep(signal),
  close: () => store.close(),
});
