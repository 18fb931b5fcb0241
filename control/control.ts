/** The control plane, put together: grouped use cases over the ports. Composition roots call this and nothing deeper. */
import { type Audit, createAudit } from './audit/audit.ts';
import { type Clusters, createClusters } from './clusters/clusters.ts';
import { createDirectory, type Directory } from './directory/directory.ts';
import { createFeed, type Feed } from './events/feed.ts';
import { peeringTrigger } from './events/peering-trigger.ts';
import { createIdempotency, type Idempotency } from './idempotency/idempotency.ts';
import { createInvitations, type Invitations } from './invitations/invitations.ts';
import type { ControlDeps } from './model/deps.ts';
import { createExchange, type Exchange } from './peerings/agent-exchange/exchange.ts';
import { createInClusterRequests } from './peerings/agent-exchange/in-cluster-requests.ts';
import { createCoordinator } from './peerings/coordinator/coordinator.ts';
import { createPeerings, type Peerings } from './peerings/use-cases/peerings.ts';
import { createRequests } from './peerings/use-cases/request-peering.ts';
import type { EventBus } from './ports/event-bus.ts';
import type { Store } from './ports/store.ts';
import { type ApprovalRules, createApprovalRules } from './requests/approval-rules.ts';
import { createInbox, type Inbox } from './requests/inbox.ts';
import { createRunner } from './run-control.ts';
import { type Accounts, createAccounts } from './tenants/accounts.ts';
import { createEventTargets, createWebhooks, type EventTargets, type Webhooks } from './webhooks/create-webhooks.ts';

export interface Control {
  readonly tenants: Accounts;
  readonly clusters: Clusters;
  readonly peerings: Peerings;
  readonly invitations: Invitations;
  /** Requests across tenants: the inbox of the asked, the outgoing ones of the asking. */
  readonly requests: Inbox;
  readonly approvalRules: ApprovalRules;
  readonly directory: Directory;
  readonly exchange: Exchange;
  readonly audit: Audit;
  readonly events: Feed;
  readonly webhooks: Webhooks;
  readonly eventTargets: EventTargets;
  readonly idempotency: Idempotency;
  /** Delivers events and sweeps until the signal aborts: for a process that stays (local mode). In the cloud, schedules and streams do this. */
  run(signal: AbortSignal): Promise<void>;
}

export function createControl(given: ControlDeps): Control {
  const deps: ControlDeps = given.bus ? { ...given, store: waking(given.store, given.bus) } : given;
  const runner = createRunner(deps, () => ({
    async sweep(signal) {
      const swept = await peerings.sweep(signal);
      await accounts.deletion.sweep(signal);
      return swept;
    },
  }));
  const coordinator = createCoordinator({ ...deps, onDue: runner.onDue });
  const accounts: Accounts = createAccounts(deps, (actor, id, signal) => requests.unpeer(actor, id, {}, signal));
  const requests = createRequests({ ...deps, capacity: accounts.capacity }, coordinator);
  const inClusterRequests = createInClusterRequests({ ...deps, onDue: runner.onDue }, requests);
  const approvalRules = createApprovalRules(deps);
  const inbox = createInbox({ ...deps, capacity: accounts.capacity }, { coordinator, rules: approvalRules });
  const peerings = createPeerings(deps, { coordinator, requests, inClusterRequests, lapse: inbox.lapse });
  deps.bus?.subscribe(peeringTrigger({ coordinator, inClusterRequests }));
  const webhooks = createWebhooks(deps);
  if (webhooks.deliverer) deps.bus?.subscribe(webhooks.deliverer.subscriber);
  return {
    tenants: accounts,
    clusters: createClusters({ ...deps, capacity: accounts.capacity }, coordinator),
    peerings,
    invitations: createInvitations({ ...deps, capacity: accounts.capacity }, coordinator),
    requests: inbox,
    approvalRules,
    directory: createDirectory(deps),
    exchange: createExchange(deps, { coordinator, inClusterRequests }),
    audit: createAudit(deps),
    events: createFeed(deps),
    idempotency: createIdempotency(deps),
    webhooks,
    eventTargets: createEventTargets(deps),
    async run(signal) {
      await Promise.all([runner.run(signal), webhooks.deliverer?.run(signal)]);
    },
  };
}

/** Every commit that carries events tells the bus so. */
const waking = (store: Store, bus: EventBus): Store => ({
  get: (pk, sk, signal) => store.get(pk, sk, signal),
  getMany: (many, signal) => store.getMany(many, signal),
  query: (query, signal) => store.query(query, signal),
  async transact(ops, events, signal) {
    await store.transact(ops, events, signal);
    if (events && events.length > 0) bus.wake();
  },
  outbox: (after, limit, stream, signal) => store.outbox(after, limit, stream, signal),
  newestCursor: (stream, signal) => store.newestCursor(stream, signal),
  endStream: (stream, signal) => store.endStream(stream, signal),
  sweep: (signal) => store.sweep(signal),
  close: () => store.close(),
});
