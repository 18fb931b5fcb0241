/** `Peering` objects made inside clusters (GitOps): asked for by the same rules as everything else, and answered. */

import type * as z from 'zod';
import { type AppError, codeOf, isRetryable } from '#shared/errors/app-error.ts';
import type { AskAnswer, PeeringAsk } from '#shared/schema/protocol/agent-protocol.ts';
import type { AgentCaller, Principal } from '../access/caller.ts';
import { systemPrincipal } from '../audit/record.ts';
import type { ControlDeps } from '../deps.ts';
import { key } from '../keys.ts';
import type { ClusterRef } from '../ports/agent-channel.ts';
import type { Op } from '../ports/store.ts';
import { sameJson } from './canonical.ts';
import { untilWritten } from './coordinate.ts';
import { hasEnded, isEnding } from './load-peering.ts';
import {
  type AskRecord,
  type AsksRecord,
  type LookRecord,
  ownsTerms,
  type PeeringRecord,
  type RevisionRecord,
} from './records.ts';
import type { Requests } from './request-peering.ts';

export type Answer = z.infer<typeof AskAnswer>;

export interface Asks {
  /** Takes over what the cluster asks for now: all of it. */
  accept(agent: AgentCaller, asks: readonly PeeringAsk[], signal?: AbortSignal): Promise<void>;
  /** Tries again what was refused: a policy may have changed, an earlier peering may have ended. */
  review(cluster: ClusterRef, signal?: AbortSignal): Promise<void>;
  answers(cluster: ClusterRef, signal?: AbortSignal): Promise<Answer[]>;
}

type AsksDeps = Pick<ControlDeps, 'store' | 'clock' | 'channel'> & { readonly onDue?: (at: number) => void };

const reviewAfterMs = 30_000;

export function createAsks(deps: AsksDeps, requests: Requests): Asks {
  const { store, clock, channel } = deps;

  const stored = async ({ tenant, clusterId }: ClusterRef, signal?: AbortSignal) => {
    const { pk, sk } = key.asks(tenant, clusterId);
    return store.get<AsksRecord>(pk, sk, signal);
  };

  const owned = (record: PeeringRecord | undefined, uid: string): record is PeeringRecord =>
    record?.spec.ask?.uid === uid;

  async function end(who: Principal, cluster: ClusterRef, ask: PeeringAsk, signal?: AbortSignal): Promise<void> {
    const item = await requests.loadPair(cluster.tenant, cluster.clusterId, ask.provider, signal);
    if (!owned(item?.value, ask.uid) || isEnding(item.value)) return;
    const { id, ask: known } = item.value.spec;
    if (known && !ownsTerms(known)) await requests.release(cluster.tenant, id, ask.uid, signal);
    else await requests.unpeer(who, id, {}, signal);
  }

  /** Returns why it was refused. Trouble that passes by itself is thrown, and the agent reports again. */
  async function pursue(
    who: Principal,
    cluster: ClusterRef,
    ask: PeeringAsk,
    signal?: AbortSignal,
  ): Promise<{ readonly code: string; readonly message: string } | undefined> {
    const { name, uid, generation, owner } = ask;
    const before = await requests.loadPair(cluster.tenant, cluster.clusterId, ask.provider, signal);
    // Somebody ended it on purpose: it takes a change of the object, or a new one, to ask again.
    if (owned(before?.value, uid) && isEnding(before.value) && before.value.spec.ask?.generation === generation)
      return undefined;
    try {
      const { provider, resources, network } = ask;
      const input = { consumer: cluster.clusterId, provider, resources, class: ask.class, network };
      await requests.request(who, { ...input, ask: { name, uid, generation, ...(owner && { owner }) } }, signal);
      return undefined;
    } catch (error) {
      if (!(error instanceof Error) || codeOf(error) === undefined || isRetryable(error)) throw error;
      return { code: (error as AppError).code, message: error.message };
    }
  }

  async function settle(
    who: Principal,
    cluster: ClusterRef,
    asks: readonly PeeringAsk[],
    signal?: AbortSignal,
  ): Promise<void> {
    const known = await stored(cluster, signal);
    const old = known?.value.asks ?? [];
    const gone = old.filter((ask) => !asks.some(({ uid }) => uid === ask.uid));
    for (const ask of [...gone, ...asks.filter(({ deleting }) => deleting)]) await end(who, cluster, ask, signal);
    const next: AskRecord[] = [];
    for (const ask of asks) {
      const { refusal: _, ...plain } = ask as AskRecord;
      // Another provider under the same object cannot be (the field is immutable), but costs nothing to end.
      const earlier = old.find(({ uid }) => uid === ask.uid);
      if (earlier && earlier.provider !== ask.provider) await end(who, cluster, earlier, signal);
      const refused = ask.deleting ? undefined : await pursue(who, cluster, plain, signal);
      next.push(refused ? { ...plain, refusal: { ...refused, at: sinceWhen(earlier, refused) } } : plain);
    }
    await untilWritten(() => write(cluster, next, signal), signal);
  }

  const sinceWhen = (earlier: AskRecord | undefined, refused: { readonly message: string }): number =>
    earlier?.refusal?.message === refused.message ? earlier.refusal.at : clock.now();

  /** Stores the asks, plans the next review, and has the agent fetch its answers when they differ. */
  async function write(cluster: ClusterRef, asks: readonly AskRecord[], signal?: AbortSignal): Promise<void> {
    const { tenant, clusterId } = cluster;
    const [known, revision] = await Promise.all([
      stored(cluster, signal),
      store.get<RevisionRecord>(key.revision(tenant, clusterId).pk, key.revision(tenant, clusterId).sk, signal),
    ]);
    const review = await planReview(
      cluster,
      asks.some(({ refusal }) => refusal !== undefined),
      signal,
    );
    const same = sameJson(known?.value.asks ?? [], asks);
    const next = (revision?.value.revision ?? 0) + 1;
    const counted: RevisionRecord = { revision: next, at: clock.now() };
    const bump: Op = revision
      ? { op: 'update', ...key.revision(tenant, clusterId), value: counted, ifVersion: revision.version }
      : { op: 'put', ...key.revision(tenant, clusterId), value: counted };
    const save: Op = known
      ? { op: 'update', ...key.asks(tenant, clusterId), value: { asks }, ifVersion: known.version }
      : { op: 'put', ...key.asks(tenant, clusterId), value: { asks } };
    const ops = [...review.ops, ...(same ? [] : [save, bump])];
    if (ops.length > 0) await store.transact(ops, [], signal);
    if (!same) channel.ring(cluster, next);
    if (review.dueAt !== undefined) deps.onDue?.(review.dueAt);
  }

  async function planReview({ tenant, clusterId }: ClusterRef, needed: boolean, signal?: AbortSignal) {
    const id = `asks:${clusterId}`;
    const at = key.look(tenant, id);
    const look = await store.get<LookRecord>(at.pk, at.sk, signal);
    if (look && needed && look.value.at > clock.now()) return { ops: [] };
    const drop: Op[] = look
      ? [
          { op: 'delete', ...at, ifVersion: look.version },
          { op: 'delete', ...key.due(tenant, look.value.at, id), ifVersion: 1 },
        ]
      : [];
    if (!needed) return { ops: drop };
    const dueAt = clock.now() + reviewAfterMs;
    const again: Op = look
      ? { op: 'update', ...at, value: { at: dueAt }, ifVersion: look.version }
      : { op: 'put', ...at, value: { at: dueAt } };
    return {
      ops: [
        again,
        ...drop.slice(1),
        { op: 'put' as const, ...key.due(tenant, dueAt, id), value: { asksOf: clusterId } },
      ],
      dueAt,
    };
  }

  return {
    async accept(agent, asks, signal) {
      await settle(agent, agent, asks, signal);
    },

    async review(cluster, signal) {
      const known = await stored(cluster, signal);
      const who = { ...systemPrincipal(cluster.tenant), principal: `cluster/${cluster.clusterId}` };
      await settle(who, cluster, known?.value.asks ?? [], signal);
    },

    async answers(cluster, signal) {
      const known = await stored(cluster, signal);
      const answers: Answer[] = [];
      for (const ask of known?.value.asks ?? []) {
        const item = await requests.loadPair(cluster.tenant, cluster.clusterId, ask.provider, signal);
        answers.push(answerTo(ask, owned(item?.value, ask.uid) ? item.value : undefined));
      }
      return answers;
    },
  };
}

const iso = (ms: number): string => new Date(ms).toISOString();

function answerTo(ask: AskRecord, record: PeeringRecord | undefined): Answer {
  const base = { name: ask.name, uid: ask.uid, observedGeneration: ask.generation };
  const refused = ask.refusal && {
    type: 'Accepted',
    status: 'False' as const,
    reason: reasonOf(ask.refusal.code),
    message: ask.refusal.message,
    lastTransitionTime: iso(ask.refusal.at),
  };
  if (!record) return { ...base, phase: refused ? 'Failed' : 'Proposed', conditions: refused ? [refused] : [] };
  const { spec, state } = record;
  const conditions = state.conditions.map(({ type, status, reason, message, since }) => ({
    type,
    status,
    reason,
    message,
    lastTransitionTime: iso(since),
  }));
  const ready = state.phase === 'Ready';
  // A person, an agent or a lost cluster ended it, not this object, which asks again only when it changes.
  const endedElsewhere = isEnding(record) &&
    !ask.deleting && {
      type: 'Accepted',
      status: 'False' as const,
      reason: 'EndedElsewhere',
      message: `peering ${spec.id} was ended and not by this object; change its spec, or delete it and create it again, to ask once more`,
      lastTransitionTime: iso(spec.unpeerRequestedAt ?? state.removal?.startedAt ?? spec.createdAt),
    };
  const summary = {
    type: 'Ready',
    status: ready ? ('True' as const) : ('False' as const),
    reason: state.phase,
    message: ready
      ? `node ${spec.provider} is ready`
      : (state.conditions.find((c) => c.status !== 'True')?.message ?? state.phase),
    lastTransitionTime: iso(state.phaseSince[state.phase] ?? spec.createdAt),
  };
  return {
    ...base,
    peering: spec.id,
    phase: hasEnded(record) ? 'Gone' : state.phase,
    ...(hasEnded(record) ? {} : { owner: spec.ask && ownsTerms(spec.ask) ? ('Object' as const) : ('Broker' as const) }),
    conditions: [
      summary,
      ...(refused ? [refused] : []),
      ...(!refused && endedElsewhere ? [endedElsewhere] : []),
      ...conditions,
    ],
  };
}

/** `policy_refused` as Kubernetes writes reasons: `PolicyRefused`. */
const reasonOf = (code: string): string =>
  code.replaceAll(/(^|_)([a-z])/g, (_, __, letter: string) => letter.toUpperCase());
