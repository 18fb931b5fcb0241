/** Asking for a peering and ending one: the same rules for people, portals and `Peering` objects inside a cluster. */
import { sameJson } from '#shared/domain/json-equality.ts';
import { AppError, codeOf } from '#shared/errors/app-error.ts';
import type { Principal } from '../../access/caller.ts';
import { auditOps, eventOf, traced } from '../../audit/record.ts';
import { labelOps } from '../../labels/label-index.ts';
import type { Capacity } from '../../limits/capacity.ts';
import type { ClusterRecord } from '../../model/cluster.ts';
import type { Coordinator } from '../../model/coordinator.ts';
import type { ControlDeps } from '../../model/deps.ts';
import type { Labels } from '../../model/labels.ts';
import type { LookRecord, PairRecord, PeeringRecord, PeeringSpec } from '../../model/peering-records.ts';
import type { Ask, Requests, RequestWithOrigin } from '../../model/peering-requests.ts';
import type { Item, Op } from '../../ports/store.ts';
import { key } from '../../store/keys.ts';
import { earlier, remembered } from '../../store/repeat.ts';
import { untilWritten } from '../../store/until-written.ts';
import { hasEnded, isEnding } from '../core/ended.ts';
import { initialState, ownsTerms } from '../core/peering-state.ts';
import { sideOf } from '../cross-tenant/copies.ts';
import { changeCrossTenant, newNonce } from '../cross-tenant/create.ts';
import { freeNames, loadPair } from '../cross-tenant/peer-names.ts';
import { ownersOf, type Terms, validateConsumer, validateProvider } from '../terms/consent.ts';
import { settleNetwork } from '../terms/network-terms.ts';
import { type CheckedTerms, checkTerms, refuseSelf } from '../terms/terms.ts';
import { requestUnpeer } from './request-unpeer.ts';

interface Requested {
  readonly id: string;
  readonly created: boolean;
}

type RequestDeps = Pick<ControlDeps, 'store' | 'clock' | 'ids'> & { readonly capacity: Capacity };

/** One object asks for a pair; a second one would be heard at random. */
function refuseSecond({ ask: known, consumer, provider }: PeeringSpec, ask: Ask | undefined): void {
  if (!ask || !known || known.uid === ask.uid) return;
  throw new AppError(
    'already_exists',
    `Peering ${known.name} of ${consumer} asks for ${provider} already; delete one of the two`,
    { detail: { name: known.name } },
  );
}

export function createRequests(deps: RequestDeps, coordinator: Coordinator): Requests {
  const { store, clock, ids } = deps;

  async function cluster(tenant: string, id: string, signal?: AbortSignal): Promise<Item<ClusterRecord>> {
    const { pk, sk } = key.cluster(tenant, id);
    const item = await store.get<ClusterRecord>(pk, sk, signal);
    if (item?.value.state !== 'joined') {
      throw new AppError(
        'cluster_unknown',
        `no cluster ${id} has joined; list clusters with \`isthmus get clusters\``,
        {
          detail: { cluster: id },
        },
      );
    }
    return item;
  }

  function validateRequest(tenant: string, terms: Terms, { consumer, provider }: Parties, mustAccept: boolean): void {
    const { ofConsumer, ofProvider } = ownersOf(tenant, undefined);
    const verdicts = [
      validateProvider(provider.value.facts, terms, ofConsumer),
      validateConsumer(consumer.value.facts, terms, ofProvider),
    ];
    for (const verdict of verdicts) {
      if (verdict.kind === 'refused') throw new AppError('policy_refused', verdict.message, { detail: verdict.detail });
      if (verdict.kind === 'undecided' && mustAccept) {
        throw new AppError('policy_refused', `${verdict.message}; ${verdict.action}, then ask again`, {
          detail: { ...terms },
        });
      }
    }
  }

  async function requestOnce(
    actor: Principal,
    terms: CheckedTerms,
    { ask, class: named, network, labels }: Pick<RequestWithOrigin, 'ask' | 'class' | 'network' | 'labels'>,
    signal?: AbortSignal,
  ): Promise<Requested> {
    const { tenant } = actor;
    const found = await loadPair(store, tenant, terms, signal);
    if (found && sideOf(tenant, found.value.spec) === 'consumer' && !hasEnded(found.value)) {
      const { spec } = found.value;
      if (ask) {
        throw new AppError(
          'already_exists',
          `${spec.consumer} uses ${spec.provider} of tenant ${spec.across?.provider} already, by ${spec.across?.grant.by}; a Peering object asks within its own tenant, change this one with \`isthmus peer\``,
          { detail: { peering: spec.id } },
        );
      }
      const wanted = { ...(named ? terms : { ...terms, class: spec.class }), ...(network ? { network } : {}) };
      return changeCrossTenant(deps, actor, wanted, found.value, signal);
    }
    const existing = found?.value.spec.across ? undefined : found;
    const [consumer, provider] = await Promise.all([
      cluster(tenant, terms.consumer, signal),
      cluster(tenant, terms.provider, signal),
    ]);
    const ended = existing !== undefined && hasEnded(existing.value);
    if (existing && !ended && isEnding(existing.value)) {
      throw new AppError(
        'in_use',
        `${terms.consumer} and ${terms.provider} are being unpeered; ask again when that has ended`,
        {
          detail: { peering: existing.value.spec.id },
        },
      );
    }
    if (existing && ended && existing.value.state.removal?.finishedAt === undefined) {
      const left = existing.value.state.leftBehind.join('; ');
      throw new AppError(
        'in_use',
        `the earlier peering is not cleaned up yet (${left}); start that agent, or remove the cluster`,
        {
          detail: { peering: existing.value.spec.id },
        },
      );
    }
    const live = existing && !ended ? existing : undefined;
    if (live && ask && !ownsTerms(ask)) return attach(live, ask, signal);
    const before = live?.value.spec.network;
    const { ofConsumer, ofProvider } = ownersOf(tenant, undefined);
    const settled = settleNetwork(network, before, {
      consumer: { id: terms.consumer, facts: consumer.value.facts, peerOwner: ofProvider },
      provider: { id: terms.provider, facts: provider.value.facts, peerOwner: ofConsumer },
    });
    // A peering from before there were links stays without one until a caller asks for it.
    const full: Terms = live && !before && !network ? terms : { ...terms, network: settled };
    if (live) return change(actor, live, full, { ask, consumer, provider }, signal);
    validateRequest(tenant, full, { ask, consumer, provider }, false);
    return create(actor, full, { ask, consumer, provider, labels }, signal);
  }

  interface Parties {
    readonly ask: PeeringSpec['ask'];
    readonly consumer: Item<ClusterRecord>;
    readonly provider: Item<ClusterRecord>;
    /** Of a peering that is made. */
    readonly labels?: Labels | undefined;
  }

  /** The decision rests on the policies that were read. */
  const unchanged = ({ pk, sk, version }: Item): Op => ({ op: 'check', pk, sk, ifVersion: version });

  async function create(actor: Principal, terms: Terms, parties: Parties, signal?: AbortSignal) {
    const { ask, consumer, provider, labels = {} } = parties;
    const labelled = Object.keys(labels).length > 0;
    const { tenant } = actor;
    const counted = await deps.capacity.take(tenant, 'peerings', signal);
    const now = clock.now();
    const id = ids.next('pe');
    const spec: PeeringSpec = {
      id,
      ...terms,
      nonce: newNonce(deps),
      createdAt: now,
      requestedBy: actor.principal,
      ...traced(actor),
      ...(labelled ? { labels } : {}),
      ...(ask ? { ask } : {}),
    };
    const pairAt = key.pair(tenant, terms.consumer, terms.provider);
    const pair = await store.get<PairRecord>(pairAt.pk, pairAt.sk, signal);
    const names = await freeNames(store, tenant, terms, signal);
    const subject = `peering/${id}`;
    await store.transact(
      [
        // Due at once: if this process dies before its first look, the next sweep does it.
        { op: 'put', ...key.look(tenant, id), value: { at: now } satisfies LookRecord },
        { op: 'put', ...key.due(tenant, now, id), value: { peering: id } },
        { op: 'put', ...key.peering(tenant, id), value: { spec, state: initialState } satisfies PeeringRecord },
        counted,
        ...labelOps({ tenant, kind: 'peering', id }, {}, labels),
        pair
          ? { op: 'update', ...pairAt, value: { id } satisfies PairRecord, ifVersion: pair.version }
          : { op: 'put', ...pairAt, value: { id } satisfies PairRecord },
        { op: 'put', ...key.peeringOf(tenant, terms.consumer, id), value: { id } satisfies PairRecord },
        { op: 'put', ...key.peeringOf(tenant, terms.provider, id), value: { id } satisfies PairRecord },
        ...names,
        unchanged(consumer),
        unchanged(provider),
        ...auditOps(deps, actor, {
          action: 'peering.request',
          subject,
          after: { ...terms, ...(labelled ? { labels } : {}) },
        }),
        ...remembered(actor, { id, created: true } satisfies Requested),
      ],
      [
        eventOf(deps, tenant, 'peering.requested', subject, { ...terms }),
        ...(labelled
          ? [
              eventOf(deps, tenant, 'peering.labels-changed', subject, {
                consumer: terms.consumer,
                provider: terms.provider,
                labels,
              }),
            ]
          : []),
      ],
      signal,
    );
    return { id, created: true };
  }

  /** An object that yields to the API only shows what there is. */
  async function attach(live: Item<PeeringRecord>, ask: Ask, signal?: AbortSignal) {
    const { spec, state } = live.value;
    refuseSecond(spec, ask);
    if (!sameJson(spec.ask, ask)) {
      const value: PeeringRecord = { spec: { ...spec, ask }, state };
      await store.transact([{ op: 'update', pk: live.pk, sk: live.sk, value, ifVersion: live.version }], [], signal);
    }
    return { id: spec.id, created: false };
  }

  async function change(
    actor: Principal,
    live: Item<PeeringRecord>,
    terms: Terms,
    { ask, consumer, provider }: Parties,
    signal?: AbortSignal,
  ) {
    const { spec, state } = live.value;
    refuseSecond(spec, ask);
    const before: Terms = {
      consumer: spec.consumer,
      provider: spec.provider,
      class: spec.class,
      resources: spec.resources,
      ...(spec.network ? { network: spec.network } : {}),
    };
    const sameTerms = sameJson(before, terms);
    if (!ask && !sameTerms && spec.ask && ownsTerms(spec.ask)) {
      throw new AppError(
        'owned_by_object',
        `Peering ${spec.ask.name} in ${spec.consumer} owns the peering ${spec.consumer} -> ${spec.provider}; change it there, or set its spec.owner to Broker`,
        { detail: { peering: spec.id, object: spec.ask.name, cluster: spec.consumer } },
      );
    }
    const sameAsk = ask === undefined || sameJson(spec.ask, ask);
    if (sameTerms && sameAsk) return { id: spec.id, created: false };
    if (!sameTerms) validateRequest(actor.tenant, terms, { ask, consumer, provider }, state.consentedAt !== undefined);
    const next: PeeringSpec = { ...spec, ...terms, ...traced(actor), ...(ask ? { ask } : {}) };
    const subject = `peering/${spec.id}`;
    await store.transact(
      [
        {
          op: 'update',
          ...key.peering(actor.tenant, spec.id),
          value: { spec: next, state } satisfies PeeringRecord,
          ifVersion: live.version,
        },
        unchanged(consumer),
        unchanged(provider),
        ...auditOps(deps, actor, { action: 'peering.change', subject, before, after: { ...terms } }),
        ...remembered(actor, { id: spec.id, created: false } satisfies Requested),
      ],
      [eventOf(deps, actor.tenant, 'peering.changed', subject, { ...terms })],
      signal,
    );
    return { id: spec.id, created: false };
  }

  async function releaseOnce(tenant: string, id: string, uid: string, signal?: AbortSignal): Promise<void> {
    const at = key.peering(tenant, id);
    const item = await store.get<PeeringRecord>(at.pk, at.sk, signal);
    if (item?.value.spec.ask?.uid !== uid) return;
    const { ask: _, ...spec } = item.value.spec;
    const value: PeeringRecord = { spec, state: item.value.state };
    await store.transact([{ op: 'update', ...at, value, ifVersion: item.version }], [], signal);
  }

  return {
    release: (tenant, id, uid, signal) => untilWritten(() => releaseOnce(tenant, id, uid, signal), signal),
    loadPair: (tenant, consumer, provider, signal) => loadPair(store, tenant, { consumer, provider }, signal),

    async request(actor, input, signal) {
      const terms = checkTerms(input);
      refuseSelf(terms);
      const done =
        earlier<Requested>(actor) ?? (await untilWritten(() => requestOnce(actor, terms, input, signal), signal));
      await coordinator.look(actor.tenant, done.id, signal);
      return done;
    },

    async unpeer(actor, id, { ifVersion, force = false } = {}, signal) {
      try {
        await untilWritten(
          () => requestUnpeer(deps, actor, id, { ...(ifVersion !== undefined && { ifVersion }), force }, signal),
          signal,
        );
      } catch (error) {
        if (codeOf(error) !== 'version_conflict' || ifVersion === undefined) throw error;
        throw new AppError('precondition_failed', `peering ${id} changed meanwhile; read it again`, { cause: error });
      }
      await coordinator.look(actor.tenant, id, signal);
    },
  };
}
