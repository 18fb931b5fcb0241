/** What makes and changes a peering across tenants: one transaction that reaches exactly the two clusters concerned. */
import { sameJson } from '#shared/domain/json-equality.ts';
import { AppError } from '#shared/errors/app-error.ts';
import type { Principal } from '../../access/caller.ts';
import { traced } from '../../audit/record.ts';
import { type Capacity, countOps } from '../../limits/capacity.ts';
import type { ClusterRecord } from '../../model/cluster.ts';
import type { CrossTenant, PeerOfCluster } from '../../model/cross-tenant.ts';
import type { ControlDeps } from '../../model/deps.ts';
import type { AskedNetwork } from '../../model/network-terms.ts';
import type { LookRecord, PairRecord, PeeringRecord, PeeringSpec } from '../../model/peering-records.ts';
import type { TenantRecord } from '../../model/tenant.ts';
import type { Item, NewEvent, Op } from '../../ports/store.ts';
import { key } from '../../store/keys.ts';
import { remembered } from '../../store/repeat.ts';
import { isEnding } from '../core/ended.ts';
import { initialState } from '../core/peering-state.ts';
import { roles } from '../core/roles.ts';
import { ownersOf, type Terms, validateProvider } from '../terms/consent.ts';
import { settleNetwork } from '../terms/network-terms.ts';
import { type CheckedTerms, mustBeWithin, upTo } from '../terms/terms.ts';
import { auditBoth, eventBoth } from './audit-both.ts';
import { copyFor, copyOps, homeOf, loadCopies, tenantsOf } from './copies.ts';
import { claimNames } from './peer-names.ts';

type Deps = Pick<ControlDeps, 'store' | 'clock' | 'ids'>;
export type CrossTenantDeps = Deps & { readonly capacity: Capacity };

const nonceBytes = 64;

/** For `data` of a Secret, which is base64 once more: the text of a nonce is base64 already, and that text is signed. */
export const newNonce = ({ ids }: Pick<ControlDeps, 'ids'>): string =>
  Buffer.from(Buffer.from(ids.bytes(nonceBytes)).toString('base64')).toString('base64');

export interface CrossTenantRequest {
  readonly who: Principal;
  readonly across: CrossTenant;
  readonly terms: CheckedTerms;
  /** A rule of the provider's tenant agrees, while the other tenant is being served. */
  readonly byRule?: boolean;
}

export interface CrossTenantPlan {
  readonly id: string;
  /** False: the pair is peered already, by this very invitation or request. */
  readonly created: boolean;
  readonly ops: readonly Op[];
  readonly events: readonly NewEvent[];
}

async function joined(
  { store }: Deps,
  { tenant, id, asking }: { readonly tenant: string; readonly id: string; readonly asking: string },
  signal?: AbortSignal,
): Promise<Item<ClusterRecord>> {
  const { pk, sk } = key.cluster(tenant, id);
  const item = await store.get<ClusterRecord>(pk, sk, signal);
  if (item?.value.state === 'joined') return item;
  const whose = tenant === asking ? '' : ` of tenant ${tenant}`;
  throw new AppError('cluster_unknown', `no cluster ${id}${whose} has joined`, { detail: { cluster: id } });
}

async function bothJoined(deps: Deps, { who: actor, across, terms }: CrossTenantRequest, signal?: AbortSignal) {
  const asking = actor.tenant;
  const [consumer, provider] = await Promise.all([
    joined(deps, { tenant: across.consumer, id: terms.consumer, asking }, signal),
    joined(deps, { tenant: across.provider, id: terms.provider, asking }, signal),
  ]);
  return { consumer, provider };
}

function partiesOf(across: CrossTenant, consumer: ClusterRecord, provider: ClusterRecord) {
  const { ofConsumer, ofProvider } = ownersOf(undefined, across);
  return {
    consumer: { id: consumer.id, facts: consumer.facts, peerOwner: ofProvider },
    provider: { id: provider.id, facts: provider.facts, peerOwner: ofConsumer },
    discreet: true,
  };
}

/** A tenant that is suspended or being deleted enters into nothing new, and the decision holds only as long as that is so. */
async function mustBeOpenTo(
  { store }: Deps,
  { tenant, asking }: { readonly tenant: string; readonly asking: string },
  signal?: AbortSignal,
): Promise<Op> {
  const { pk, sk } = key.tenant(tenant);
  const item = await store.get<Pick<TenantRecord, 'state'>>(pk, sk, signal);
  if (item && (item.value.state ?? 'active') === 'active') return unchanged(item);
  throw new AppError(
    'in_use',
    `${tenant === asking ? 'your tenant' : `tenant ${tenant}`} enters into no new peerings at present`,
    { detail: { tenant } },
  );
}

/** The provider's own PeeringPolicy has the last word. Its tenant hears what it says; the other hears which field it is about. */
function mustSuit(provider: ClusterRecord, { who: actor, across, terms }: CrossTenantRequest): void {
  const verdict = validateProvider(provider.facts, terms, ownersOf(undefined, across).ofConsumer);
  if (verdict.kind !== 'refused') return;
  if (actor.tenant === across.provider)
    throw new AppError('policy_refused', verdict.message, { detail: verdict.detail });
  const field = String(verdict.detail.field);
  const value = String(verdict.detail.value);
  throw new AppError(
    'policy_refused',
    `${field} is ${value}; ${terms.provider} of tenant ${across.provider} does not accept that`,
    { detail: { field, value } },
  );
}

const unchanged = ({ pk, sk, version }: Item): Op => ({ op: 'check', pk, sk, ifVersion: version });

/** The peering that the pair has now, if it is not over. */
async function current({ store }: Deps, { across, terms }: CrossTenantRequest, signal?: AbortSignal) {
  const at = key.peer(across.consumer, terms.consumer, terms.provider);
  const entry = await store.get<PeerOfCluster>(at.pk, at.sk, signal);
  if (entry?.value.tenant !== across.provider || entry.value.consumer === undefined) return undefined;
  const copyAt = key.peering(across.consumer, entry.value.consumer);
  const copy = await store.get<PeeringRecord>(copyAt.pk, copyAt.sk, signal);
  return copy?.value.state.removal?.finishedAt === undefined ? copy?.value : undefined;
}

/** The operations are to be committed together with what spends the consent. */
export async function planCrossTenant(
  deps: CrossTenantDeps,
  request: CrossTenantRequest,
  signal?: AbortSignal,
): Promise<CrossTenantPlan> {
  const { who: actor, across, terms } = request;
  const asking = actor.tenant;
  mustBeWithin(across.grant, terms);
  const { consumer, provider } = await bothJoined(deps, request, signal);
  const now = await current(deps, request, signal);
  if (now) {
    const same = now.spec.across?.grant.id === across.grant.id && !isEnding(now);
    if (same) return { id: now.spec.id, created: false, ops: [], events: [] };
    const how = isEnding(now)
      ? 'are being unpeered; try again when that has ended'
      : 'are peered already; unpeer first';
    throw new AppError('in_use', `${terms.consumer} and ${terms.provider} ${how}`, {
      detail: { peering: now.spec.id },
    });
  }
  mustSuit(provider.value, request);
  // It counts for both. The limit is that of the tenant whose request this is: the other one had to have room when it invited or asked, or made a rule.
  const charged = request.byRule ? across.consumer : asking;
  const limited = await deps.capacity.take(charged, 'peerings', signal);
  const open = await Promise.all(roles.map((role) => mustBeOpenTo(deps, { tenant: across[role], asking }, signal)));
  const createdAt = deps.clock.now();
  const id = deps.ids.next('pe');
  const names = await claimNames(deps.store, { ...terms, id, across, asking }, signal);
  const by = asking === across.consumer ? actor.principal : `tenant/${asking}`;
  const network = settleNetwork(undefined, undefined, partiesOf(across, consumer.value, provider.value));
  const spec: PeeringSpec = {
    id,
    ...terms,
    network,
    nonce: newNonce(deps),
    createdAt,
    requestedBy: by,
    ...traced(actor),
    across,
  };
  const record: PeeringRecord = { spec, state: initialState };
  const home = across.provider;
  const about = { subject: `peering/${id}`, data: { ...terms, network } };
  return {
    id,
    created: true,
    ops: [
      // Due at once: if this process dies before its first look, the next sweep does it.
      { op: 'put', ...key.look(home, id), value: { at: createdAt } satisfies LookRecord },
      { op: 'put', ...key.due(home, createdAt, id), value: { peering: id } },
      { op: 'put', ...homeOf(home, spec), value: record },
      ...roles.flatMap((role): Op[] => [
        { op: 'put', ...key.peering(across[role], id), value: copyFor(record, role) },
        ...(across[role] === charged ? [limited] : countOps(across[role], 'peerings', undefined, record)),
        { op: 'put', ...key.peeringOf(across[role], terms[role], id), value: { id } satisfies PairRecord },
      ]),
      ...names,
      ...open,
      unchanged(consumer),
      unchanged(provider),
      ...auditBoth(deps, actor, tenantsOf(home, spec), {
        action: 'peering.request',
        subject: about.subject,
        after: { ...terms, network, by: across.grant.by },
      }),
    ],
    events: eventBoth(deps, tenantsOf(home, spec), 'peering.requested', about),
  };
}

/** The consumer's tenant asks for more or less, within what the provider's tenant agreed to. */
export async function changeCrossTenant(
  deps: Deps,
  actor: Principal,
  wanted: CheckedTerms & { readonly network?: AskedNetwork },
  copy: PeeringRecord,
  signal?: AbortSignal,
): Promise<{ readonly id: string; readonly created: false }> {
  const { across } = copy.spec;
  const { store } = deps;
  const at = homeOf(actor.tenant, copy.spec);
  const [item, copies] = await Promise.all([
    store.get<PeeringRecord>(at.pk, at.sk, signal),
    loadCopies(store, copy.spec, signal),
  ]);
  if (!item || !across || isEnding(item.value)) {
    throw new AppError('in_use', `${wanted.consumer} and ${wanted.provider} are being unpeered; ask again later`, {
      detail: { peering: copy.spec.id },
    });
  }
  const { spec, state } = item.value;
  const { network, ...plain } = wanted;
  const { consumer, provider } = await bothJoined(deps, { who: actor, across, terms: plain }, signal);
  const settled =
    spec.network || network
      ? settleNetwork(network, spec.network, partiesOf(across, consumer.value, provider.value))
      : undefined;
  const terms: Terms = {
    ...plain,
    resources: upTo(across.grant.limits, plain.resources),
    ...(settled ? { network: settled } : {}),
  };
  const before: Terms = {
    consumer: spec.consumer,
    provider: spec.provider,
    class: spec.class,
    resources: spec.resources,
    ...(spec.network ? { network: spec.network } : {}),
  };
  if (sameJson(before, terms)) return { id: spec.id, created: false };
  mustBeWithin(across.grant, terms);
  mustSuit(provider.value, { who: actor, across, terms });
  const record: PeeringRecord = { spec: { ...spec, ...terms, ...traced(actor) }, state };
  const about = { subject: `peering/${spec.id}`, data: { ...terms } };
  const tenants = tenantsOf(actor.tenant, spec);
  await store.transact(
    [
      { op: 'update', ...at, value: record, ifVersion: item.version },
      ...copyOps(record, copies),
      unchanged(provider),
      ...auditBoth(deps, actor, tenants, {
        action: 'peering.change',
        subject: about.subject,
        before,
        after: { ...terms },
      }),
      ...remembered(actor, { id: spec.id, created: false }),
    ],
    eventBoth(deps, tenants, 'peering.changed', about),
    signal,
  );
  return { id: spec.id, created: false };
}
