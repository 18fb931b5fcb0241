/** Use cases around peerings for people and portals: request, read, unpeer; and the sweep that bounds every delay. */
import { inParallel } from '#shared/async/in-parallel.ts';
import { type LabelRequirement, selects } from '#shared/domain/label-selector.ts';
import { AppError } from '#shared/errors/app-error.ts';
import { type Caller, mustHave } from '../../access/caller.ts';
import { checkLabels } from '../../input/labels.ts';
import type { Coordinator } from '../../model/coordinator.ts';
import type { ControlDeps, PageRequest } from '../../model/deps.ts';
import type { LabelChange } from '../../model/labels.ts';
import type { PeeringView } from '../../model/peering.ts';
import type { DueRecord, PairRecord, PeeringRecord } from '../../model/peering-records.ts';
import type { InClusterRequests, PeeringRequest, Requests, UnpeerOptions } from '../../model/peering-requests.ts';
import { type Item, type Page, withPrefix } from '../../ports/store.ts';
import { key, partition, prefix, sortableTime } from '../../store/keys.ts';
import { pageOf } from '../../store/pages.ts';
import { ownsTerms } from '../core/peering-state.ts';
import { otherRole } from '../core/roles.ts';
import { sideOf } from '../cross-tenant/copies.ts';
import { networkView } from '../link/view.ts';
import { peeringNames } from '../state-machine/desired-objects.ts';
import { labelPeering } from './labels.ts';

interface PeeringFilter extends PageRequest {
  /** Also those that ended within the last day. */
  readonly includeGone?: boolean;
  /** Only those in which this cluster takes part. */
  readonly cluster?: string;
  /** Only those that have all of these. */
  readonly labels?: readonly LabelRequirement[];
}

export interface Peerings {
  /**
   * Makes the peering, or, when the pair is peered already, changes its resources (`created: false`). Refusals change nothing:
   * `peer_self`, `cluster_unknown`, `invalid_input` (not a quantity), `policy_refused`, `in_use` (the pair is being unpeered).
   */
  request(
    caller: Caller,
    input: PeeringRequest,
    signal?: AbortSignal,
  ): Promise<{ readonly peering: PeeringView; readonly created: boolean }>;
  get(caller: Caller, id: string, signal?: AbortSignal): Promise<PeeringView>;
  /** The peering of a pair, also when it is gone but still kept. */
  find(caller: Caller, consumer: string, provider: string, signal?: AbortSignal): Promise<PeeringView>;
  list(caller: Caller, filter?: PeeringFilter, signal?: AbortSignal): Promise<Page<PeeringView>>;
  /** Replaces the labels that the caller's tenant gave it. */
  label(caller: Caller, id: string, change: LabelChange, signal?: AbortSignal): Promise<PeeringView>;
  /** Starts the end of it, which always comes. Repeating changes nothing, but `force` may come later. */
  unpeer(caller: Caller, id: string, options?: UnpeerOptions, signal?: AbortSignal): Promise<PeeringView>;
  /** Looks at every peering whose time has come, in all tenants; returns when the next one is due. Called by a schedule. */
  sweep(signal?: AbortSignal): Promise<{ readonly nextDueAt?: number }>;
}

/** One sentence for the list view. */
function waitingFor({ state }: PeeringRecord): string {
  if (state.phase === 'Gone')
    return state.leftBehind.length === 0 ? 'nothing, it has ended' : 'the agents named under leftBehind';
  return state.conditions.find(({ status }) => status !== 'True')?.message ?? 'nothing';
}

/** How a peering with another tenant looks from one of the two. */
function crossTenantView({ spec }: PeeringRecord, tenant: string): Pick<PeeringView, 'across'> {
  const { across, unpeerRequestedBy } = spec;
  const side = sideOf(tenant, spec);
  if (!across || !side) return {};
  const { by, limits, classes, lapsesAt } = across.grant;
  const endedBy = unpeerRequestedBy === undefined ? {} : { endedBy: unpeerRequestedBy };
  return { across: { side, peerTenant: across[otherRole(side)], by, limits, classes, lapsesAt, ...endedBy } };
}

export function peeringView(record: PeeringRecord, version: number, tenant: string): PeeringView {
  const { spec, state } = record;
  return {
    id: spec.id,
    consumer: spec.consumer,
    provider: spec.provider,
    resources: spec.resources,
    class: spec.class,
    labels: spec.labels ?? {},
    phase: state.phase,
    conditions: state.conditions,
    waitingFor: waitingFor(record),
    ...(state.granted === undefined ? {} : { granted: state.granted }),
    ...networkView(record),
    nodeName: peeringNames(spec).slice,
    createdAt: spec.createdAt,
    phaseSince: state.phaseSince,
    ...(spec.unpeerRequestedAt === undefined ? {} : { unpeerRequestedAt: spec.unpeerRequestedAt }),
    leftBehind: state.leftBehind,
    ...(state.warnings ? { warnings: state.warnings } : {}),
    ...crossTenantView(record, tenant),
    owner: spec.ask !== undefined && ownsTerms(spec.ask) ? { kind: 'object', name: spec.ask.name } : { kind: 'broker' },
    version,
  };
}

interface Parts {
  readonly coordinator: Coordinator;
  readonly requests: Requests;
  readonly asks: InClusterRequests;
  /** A request of another tenant whose time is over. */
  readonly lapse: (tenant: string, due: Item<DueRecord>, signal?: AbortSignal) => Promise<void>;
}

/** In one sweep. What is due of one tenant is looked at in its order. */
const tenantsAtOnce = 16;

type PeeringsDeps = Pick<ControlDeps, 'store' | 'clock' | 'ids' | 'log'>;

export function createPeerings(deps: PeeringsDeps, parts: Parts): Peerings {
  const { store, clock, log } = deps;
  const { coordinator, requests, asks } = parts;

  async function load(tenant: string, id: string, signal?: AbortSignal): Promise<Item<PeeringRecord>> {
    const { pk, sk } = key.peering(tenant, id);
    const item = await store.get<PeeringRecord>(pk, sk, signal);
    if (!item)
      throw new AppError('not_found', `there is no peering ${JSON.stringify(id)}`, { detail: { peering: id } });
    return item;
  }

  const viewOf = async (tenant: string, id: string, signal?: AbortSignal): Promise<PeeringView> => {
    const { value, version } = await load(tenant, id, signal);
    return peeringView(value, version, tenant);
  };

  /** Those that ended and left nothing behind are shown only when asked for. */
  const shown = (
    tenant: string,
    { value, version }: Item<PeeringRecord>,
    { includeGone = false, labels = [] }: PeeringFilter,
  ): PeeringView | undefined => {
    const wanted = (value.state.removal?.finishedAt === undefined || includeGone) && selects(labels, value.spec.labels);
    return wanted ? peeringView(value, version, tenant) : undefined;
  };

  /** One peering in trouble must not keep the others from being looked at. */
  async function lookAtOne(
    tenant: string,
    { pk, sk, version, value }: Item<DueRecord>,
    signal?: AbortSignal,
  ): Promise<void> {
    try {
      if (value.asksOf !== undefined) await asks.review({ tenant, clusterId: value.asksOf }, signal);
      if (value.request !== undefined) return void (await parts.lapse(tenant, { pk, sk, version, value }, signal));
      if (value.peering === undefined || (await coordinator.look(tenant, value.peering, signal))) return;
      await store.transact([{ op: 'delete', pk, sk, ifVersion: version }], [], signal);
    } catch (error) {
      signal?.throwIfAborted();
      log.error('a due look failed and will be tried again', error, { tenant, ...value });
    }
  }

  async function lookAtDue(tenant: string, signal?: AbortSignal): Promise<number | undefined> {
    const before = sortableTime(clock.now() + 1);
    const timeOf = (item: Item | undefined): number | undefined => item && Number(item.sk.slice(0, before.length));
    // Most tenants have nothing due at most times: for them it ends here.
    const [soonest] = (await store.query({ partition: partition.due(tenant), limit: 1 }, signal)).items;
    if (!soonest || soonest.sk >= before) return timeOf(soonest);
    let cursor: string | undefined;
    do {
      const query = { partition: partition.due(tenant), to: before, limit: 100 };
      const page = await store.query<DueRecord>({ ...query, ...(cursor === undefined ? {} : { cursor }) }, signal);
      for (const item of page.items) await lookAtOne(tenant, item, signal);
      cursor = page.cursor;
    } while (cursor !== undefined);
    const next = await store.query({ partition: partition.due(tenant), from: before, limit: 1 }, signal);
    return timeOf(next.items[0]);
  }

  return {
    async request(caller, input, signal) {
      mustHave(caller, 'peerings:write');
      const { consumer, provider, resources, network } = input;
      const labels = input.labels && checkLabels(input.labels);
      const named = input.class === undefined ? {} : { class: input.class };
      const terms = { consumer, provider, resources, ...named, ...(network ? { network } : {}) };
      const { id, created } = await requests.request(caller, { ...terms, labels }, signal);
      if (labels && !created) await labelPeering(deps, caller, id, { labels }, signal);
      return { peering: await viewOf(caller.tenant, id, signal), created };
    },

    async get(caller, id, signal) {
      mustHave(caller, 'peerings:read');
      return viewOf(caller.tenant, id, signal);
    },

    async find(caller, consumer, provider, signal) {
      mustHave(caller, 'peerings:read');
      const item = await requests.loadPair(caller.tenant, consumer, provider, signal);
      if (!item) {
        throw new AppError('not_found', `${consumer} and ${provider} are not peered`, {
          detail: { consumer, provider },
        });
      }
      return peeringView(item.value, item.version, caller.tenant);
    },

    async list(caller, filter = {}, signal) {
      mustHave(caller, 'peerings:read');
      const { tenant } = caller;
      if (filter.cluster === undefined) {
        const query = { partition: partition.peerings(tenant) };
        return pageOf<PeeringRecord, PeeringView>(store, query, filter, (item) => shown(tenant, item, filter), signal);
      }
      return pageOf<PairRecord, PeeringView>(
        store,
        { partition: partition.cluster(tenant, filter.cluster), ...withPrefix(prefix.peeringsOfCluster) },
        filter,
        async ({ value }) => {
          const { pk, sk } = key.peering(tenant, value.id);
          const item = await store.get<PeeringRecord>(pk, sk, signal);
          return item && shown(tenant, item, filter);
        },
        signal,
      );
    },

    async label(caller, id, change, signal) {
      await labelPeering(deps, caller, id, change, signal);
      return viewOf(caller.tenant, id, signal);
    },

    async unpeer(caller, id, options = {}, signal) {
      mustHave(caller, 'peerings:write');
      await requests.unpeer(caller, id, options, signal);
      return viewOf(caller.tenant, id, signal);
    },

    async sweep(signal) {
      let nextDueAt: number | undefined;
      let cursor: string | undefined;
      do {
        const query = { partition: partition.tenants, limit: 100, ...(cursor === undefined ? {} : { cursor }) };
        const page = await store.query(query, signal);
        await inParallel(page.items, tenantsAtOnce, async ({ sk: tenant }) => {
          const next = await lookAtDue(tenant, signal);
          if (next !== undefined) nextDueAt = Math.min(next, nextDueAt ?? next);
        });
        cursor = page.cursor;
      } while (cursor !== undefined);
      return nextDueAt === undefined ? {} : { nextDueAt };
    },
  };
}
