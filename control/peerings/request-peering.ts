/** Asking for a peering and ending one: the same rules for people, portals and `Peering` objects inside a cluster. */
import { parseResources } from '#shared/domain/quantity.ts';
import { AppError, codeOf } from '#shared/errors/app-error.ts';
import { ClusterId } from '#shared/schema/protocol/agent-protocol.ts';
import type { Principal } from '../access/caller.ts';
import { auditOp, eventOf } from '../audit/record.ts';
import type { ClusterRecord } from '../clusters/cluster.ts';
import type { ControlDeps } from '../deps.ts';
import { key } from '../keys.ts';
import type { Capacity } from '../limits/capacity.ts';
import type { Item, Op } from '../ports/store.ts';
import { sameJson } from './canonical.ts';
import { judgeConsumer, judgeProvider, type Terms } from './consent.ts';
import { type Coordinator, untilWritten } from './coordinate.ts';
import { hasEnded, isEnding } from './load-peering.ts';
import type { PeeringRequest } from './peerings.ts';
import { initialState, type LookRecord, type PairRecord, type PeeringRecord, type PeeringSpec } from './records.ts';

export interface Requests {
  request(
    who: Principal,
    input: PeeringRequest & { readonly ask?: NonNullable<PeeringSpec['ask']> },
    signal?: AbortSignal,
  ): Promise<{ readonly id: string; readonly created: boolean }>;
  unpeer(who: Principal, id: string, options?: { readonly ifVersion?: number }, signal?: AbortSignal): Promise<void>;
  loadPair(
    tenant: string,
    consumer: string,
    provider: string,
    signal?: AbortSignal,
  ): Promise<Item<PeeringRecord> | undefined>;
}

type RequestDeps = Pick<ControlDeps, 'store' | 'clock' | 'ids'> & { readonly capacity: Capacity };

const nonceBytes = 64;
const className = /^[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?$/;

/** Refuses terms that could never hold, before anything is read. */
function checkTerms(input: PeeringRequest): Terms {
  const { consumer, provider } = input;
  for (const [field, value] of Object.entries({ consumer, provider })) {
    if (!ClusterId.safeParse(value).success) {
      throw new AppError(
        'invalid_input',
        `${field} is ${JSON.stringify(value)}; a cluster ID is a DNS-1123 label of at most 63 characters`,
        {
          detail: { field, value },
        },
      );
    }
  }
  if (consumer === provider) {
    throw new AppError('peer_self', `consumer and provider are both ${consumer}; a cluster cannot peer with itself`, {
      detail: { field: 'provider', value: provider },
    });
  }
  const name = input.class === undefined || input.class === '' ? 'default' : input.class;
  if (!className.test(name)) {
    throw new AppError(
      'invalid_input',
      `class is ${JSON.stringify(name)}; accepted are 1 to 63 letters, digits, -, _ and .`,
      {
        detail: { field: 'class', value: name },
      },
    );
  }
  return { consumer, provider, class: name, resources: parseResources(input.resources) };
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

  async function loadPair(tenant: string, consumer: string, provider: string, signal?: AbortSignal) {
    const { pk, sk } = key.pair(tenant, consumer, provider);
    const pair = await store.get<PairRecord>(pk, sk, signal);
    if (!pair) return undefined;
    const at = key.peering(tenant, pair.value.id);
    return store.get<PeeringRecord>(at.pk, at.sk, signal);
  }

  function judge(terms: Terms, consumer: ClusterRecord, provider: ClusterRecord, mustAccept: boolean): void {
    for (const verdict of [judgeProvider(provider.facts, terms), judgeConsumer(consumer.facts, terms)]) {
      if (verdict.kind === 'refused') throw new AppError('policy_refused', verdict.message, { detail: verdict.detail });
      if (verdict.kind === 'undecided' && mustAccept) {
        throw new AppError('policy_refused', `${verdict.message}; ${verdict.action}, then ask again`, {
          detail: { ...terms },
        });
      }
    }
  }

  async function requestOnce(
    who: Principal,
    terms: Terms,
    ask: PeeringSpec['ask'],
    signal?: AbortSignal,
  ): Promise<{ readonly id: string; readonly created: boolean }> {
    const { tenant } = who;
    const [consumer, provider] = await Promise.all([
      cluster(tenant, terms.consumer, signal),
      cluster(tenant, terms.provider, signal),
    ]);
    const existing = await loadPair(tenant, terms.consumer, terms.provider, signal);
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
    if (live) return change(who, live, terms, { ask, consumer, provider }, signal);
    judge(terms, consumer.value, provider.value, false);
    return create(who, terms, { ask, consumer, provider }, signal);
  }

  interface Parties {
    readonly ask: PeeringSpec['ask'];
    readonly consumer: Item<ClusterRecord>;
    readonly provider: Item<ClusterRecord>;
  }

  /** The decision rests on the policies that were read. */
  const unchanged = ({ pk, sk, version }: Item): Op => ({ op: 'check', pk, sk, ifVersion: version });

  async function create(who: Principal, terms: Terms, { ask, consumer, provider }: Parties, signal?: AbortSignal) {
    const { tenant } = who;
    await deps.capacity.mustHaveRoom(tenant, 'peerings', signal);
    const now = clock.now();
    const id = ids.next('pe');
    const spec: PeeringSpec = {
      id,
      ...terms,
      nonce: Buffer.from(ids.bytes(nonceBytes)).toString('base64'),
      createdAt: now,
      requestedBy: who.principal,
      ...(ask ? { ask } : {}),
    };
    const pairAt = key.pair(tenant, terms.consumer, terms.provider);
    const pair = await store.get<PairRecord>(pairAt.pk, pairAt.sk, signal);
    const subject = `peering/${id}`;
    await store.transact(
      [
        // Due at once: if this process dies before its first look, the next sweep does it.
        { op: 'put', ...key.look(tenant, id), value: { at: now } satisfies LookRecord },
        { op: 'put', ...key.due(tenant, now, id), value: { peering: id } },
        { op: 'put', ...key.peering(tenant, id), value: { spec, state: initialState } satisfies PeeringRecord },
        pair
          ? { op: 'update', ...pairAt, value: { id } satisfies PairRecord, ifVersion: pair.version }
          : { op: 'put', ...pairAt, value: { id } satisfies PairRecord },
        { op: 'put', ...key.peeringOf(tenant, terms.consumer, id), value: { id } satisfies PairRecord },
        { op: 'put', ...key.peeringOf(tenant, terms.provider, id), value: { id } satisfies PairRecord },
        unchanged(consumer),
        unchanged(provider),
        auditOp(deps, who, { action: 'peering.request', subject, after: { ...terms } }),
      ],
      [eventOf(deps, tenant, 'peering.requested', subject, { ...terms })],
      signal,
    );
    return { id, created: true };
  }

  async function change(
    who: Principal,
    live: Item<PeeringRecord>,
    terms: Terms,
    { ask, consumer, provider }: Parties,
    signal?: AbortSignal,
  ) {
    const { spec, state } = live.value;
    if (ask && spec.ask && spec.ask.uid !== ask.uid) {
      throw new AppError(
        'already_exists',
        `Peering ${spec.ask.name} of ${spec.consumer} asks for ${spec.provider} already; delete one of the two`,
        {
          detail: { name: spec.ask.name },
        },
      );
    }
    const before: Terms = {
      consumer: spec.consumer,
      provider: spec.provider,
      class: spec.class,
      resources: spec.resources,
    };
    const sameTerms = sameJson(before, terms);
    const sameAsk = ask === undefined || sameJson(spec.ask, ask);
    if (sameTerms && sameAsk) return { id: spec.id, created: false };
    if (!sameTerms) judge(terms, consumer.value, provider.value, state.consentedAt !== undefined);
    const next: PeeringSpec = { ...spec, ...terms, ...(ask ? { ask } : {}) };
    const subject = `peering/${spec.id}`;
    await store.transact(
      [
        {
          op: 'update',
          ...key.peering(who.tenant, spec.id),
          value: { spec: next, state } satisfies PeeringRecord,
          ifVersion: live.version,
        },
        unchanged(consumer),
        unchanged(provider),
        auditOp(deps, who, { action: 'peering.change', subject, before, after: { ...terms } }),
      ],
      [eventOf(deps, who.tenant, 'peering.changed', subject, { ...terms })],
      signal,
    );
    return { id: spec.id, created: false };
  }

  async function unpeerOnce(
    who: Principal,
    id: string,
    ifVersion: number | undefined,
    signal?: AbortSignal,
  ): Promise<void> {
    const at = key.peering(who.tenant, id);
    const item = await store.get<PeeringRecord>(at.pk, at.sk, signal);
    if (!item)
      throw new AppError('not_found', `there is no peering ${JSON.stringify(id)}`, { detail: { peering: id } });
    if (ifVersion !== undefined && ifVersion !== item.version) {
      throw new AppError(
        'precondition_failed',
        `peering ${id} is at version ${item.version}, the request expects ${ifVersion}`,
        {
          detail: { expected: ifVersion, found: item.version },
        },
      );
    }
    if (isEnding(item.value)) return;
    const { spec, state } = item.value;
    const subject = `peering/${id}`;
    const value: PeeringRecord = { spec: { ...spec, unpeerRequestedAt: clock.now() }, state };
    await store.transact(
      [
        { op: 'update', ...at, value, ifVersion: item.version },
        auditOp(deps, who, { action: 'peering.unpeer', subject, before: { phase: state.phase } }),
      ],
      [
        eventOf(deps, who.tenant, 'peering.unpeer-requested', subject, {
          consumer: spec.consumer,
          provider: spec.provider,
        }),
      ],
      signal,
    );
  }

  return {
    loadPair,

    async request(who, input, signal) {
      const terms = checkTerms(input);
      const done = await untilWritten(() => requestOnce(who, terms, input.ask, signal), signal);
      await coordinator.look(who.tenant, done.id, signal);
      return done;
    },

    async unpeer(who, id, { ifVersion } = {}, signal) {
      try {
        await untilWritten(() => unpeerOnce(who, id, ifVersion, signal), signal);
      } catch (error) {
        if (codeOf(error) !== 'version_conflict' || ifVersion === undefined) throw error;
        throw new AppError('precondition_failed', `peering ${id} changed meanwhile; read it again`, { cause: error });
      }
      await coordinator.look(who.tenant, id, signal);
    },
  };
}
