/** Use cases around peerings for people and portals: request, read, unpeer; and the sweep that bounds every delay. */
import { type LabelRequirement, selects } from '#shared/domain/label-selector.ts';
import { AppError } from '#shared/errors/app-error.ts';
import { type Caller, mustHave } from '../../access/caller.ts';
import { checkLabels } from '../../input/labels.ts';
import { pageByLabel } from '../../labels/label-index.ts';
import type { Coordinator } from '../../model/coordinator.ts';
import type { ControlDeps, PageRequest } from '../../model/deps.ts';
import type { LabelChange } from '../../model/labels.ts';
import type { PeeringView } from '../../model/peering.ts';
import type { DueRecord, PairRecord, PeeringRecord } from '../../model/peering-records.ts';
import type { InClusterRequests, PeeringRequest, Requests, UnpeerOptions } from '../../model/peering-requests.ts';
import { type Item, type Page, withPrefix } from '../../ports/store.ts';
import { type DueItem, type Swept, sweepDue } from '../../store/due.ts';
import { key, partition, prefix } from '../../store/keys.ts';
import { pageOf, pageOfMany } from '../../store/pages.ts';
import { ownsTerms } from '../core/peering-state.ts';
import { otherRole, roles } from '../core/roles.ts';
import { sideOf, tenantOf } from '../cross-tenant/copies.ts';
import { networkView } from '../link/view.ts';
import { readSamples, type SeriesView, type Span } from '../samples/samples.ts';
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
  /** Round trip, loss and throughput as the agents measured them, and how much of the grant is in use: of the last hour or day. */
  samples(caller: Caller, id: string, span: Span, signal?: AbortSignal): Promise<SeriesView>;
  /** The peering of a pair, also when it is gone but still kept. */
  find(caller: Caller, consumer: string, provider: string, signal?: AbortSignal): Promise<PeeringView>;
  list(caller: Caller, filter?: PeeringFilter, signal?: AbortSignal): Promise<Page<PeeringView>>;
  /** Replaces the labels that the caller's tenant gave it. */
  label(caller: Caller, id: string, change: LabelChange, signal?: AbortSignal): Promise<PeeringView>;
  /** Starts the end of it, which always comes. Repeating changes nothing, but `force` may come later. */
  unpeer(caller: Caller, id: string, options?: UnpeerOptions, signal?: AbortSignal): Promise<PeeringView>;
  /** Looks at every peering whose time has come, in all tenants, and says when the next one is due. Called by a schedule. Ends with its signal without an error. */
  sweep(signal?: AbortSignal): Promise<Swept>;
}

/** One sentence for the list view. */
function waitingFor({ state }: PeeringRecord): string {
  if (state.phase === 'Gone')
    return state.leftBehind.length === 0 ? 'nothing, it has ended' : 'the agents named under leftBehind';
  return state.conditions.find(({ status }) => status !== 'True')?.message ?? 'nothing';
}

/** Across tenants another cluster of the same name may be on the other side. */
const hasPart = (cluster: string, tenant: string, spec: PeeringRecord['spec']): boolean =>
  roles.some((role) => spec[role] === cluster && tenantOf(tenant, spec, role) === tenant);

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
  readonly inClusterRequests: InClusterRequests;
  /** A request of another tenant whose time is over. */
  readonly lapse: (tenant: string, due: Item<DueRecord>, signal?: AbortSignal) => Promise<void>;
}

type PeeringsDeps = Pick<ControlDeps, 'store' | 'clock' | 'ids' | 'log'>;

export function createPeerings(deps: PeeringsDeps, parts: Parts): Peerings {
  const { store } = deps;
  const { coordinator, requests, inClusterRequests } = parts;

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
    { includeGone = false, cluster, labels = [] }: PeeringFilter,
  ): PeeringView | undefined => {
    const { spec, state } = value;
    const wanted =
      (state.removal?.finishedAt === undefined || includeGone) &&
      (cluster === undefined || hasPart(cluster, tenant, spec)) &&
      selects(labels, spec.labels);
    return wanted ? peeringView(value, version, tenant) : undefined;
  };

  async function lookAtOne({ tenant, item }: DueItem<DueRecord>, signal?: AbortSignal): Promise<void> {
    const { pk, sk, version, value } = item;
    if (value.asksOf !== undefined) await inClusterRequests.review({ tenant, clusterId: value.asksOf }, signal);
    if (value.request !== undefined) return void (await parts.lapse(tenant, item, signal));
    if (value.peering === undefined || (await coordinator.look(tenant, value.peering, signal))) return;
    await store.transact([{ op: 'delete', pk, sk, ifVersion: version }], [], signal);
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

    async samples(caller, id, span, signal) {
      mustHave(caller, 'peerings:read');
      const { value } = await load(caller.tenant, id, signal);
      return readSamples(deps, caller, value.spec, span, signal);
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
      const { cluster, labels: [label, ...labels] = [] } = filter;
      const views = async (ids: readonly string[]) => {
        const keys = ids.map((id) => key.peering(tenant, id));
        const items = await store.getMany<PeeringRecord>({ keys }, signal);
        return items.map((item) => item && shown(tenant, item, filter));
      };
      if (label !== undefined)
        return pageByLabel(store, { tenant, kind: 'peering' }, [label, ...labels], filter, views, signal);
      if (cluster === undefined) {
        const query = { partition: partition.peerings(tenant) };
        return pageOf<PeeringRecord, PeeringView>(store, query, filter, (item) => shown(tenant, item, filter), signal);
      }
      return pageOfMany<PairRecord, PeeringView>(
        store,
        { partition: partition.cluster(tenant, cluster), ...withPrefix(prefix.peeringsOfCluster) },
        filter,
        (places) => views(places.map(({ value }) => value.id)),
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

    sweep: (signal) => sweepDue<DueRecord>(deps, { index: 'looks', handle: lookAtOne }, signal),
  };
}
