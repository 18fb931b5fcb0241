/** `Peering` objects made inside clusters (GitOps): asked for by the same rules as everything else, and answered. */
import { sameJson } from '#shared/domain/json-equality.ts';
import { type AppError, codeOf, isRetryable } from '#shared/errors/app-error.ts';
import type { ErrorCode } from '#shared/errors/codes.ts';
import type { PeeringAsk } from '#shared/schema/protocol/agent-protocol.ts';
import type { Principal } from '../../access/caller.ts';
import { systemPrincipal } from '../../audit/record.ts';
import type { ClusterRecord } from '../../model/cluster.ts';
import type { ControlDeps } from '../../model/deps.ts';
import type {
  AskRecord,
  AsksRecord,
  DueRecord,
  LookRecord,
  PeeringRecord,
  RevisionRecord,
} from '../../model/peering-records.ts';
import type { Answer, InClusterRequests, Requests } from '../../model/peering-requests.ts';
import type { ClusterRef } from '../../ports/agent-channel.ts';
import { type Item, type Op, withPrefix } from '../../ports/store.ts';
import { everyItem } from '../../store/every-item.ts';
import { key, partition } from '../../store/keys.ts';
import { untilWritten } from '../../store/until-written.ts';
import { hasEnded, isEnding } from '../core/ended.ts';
import { ownsTerms } from '../core/peering-state.ts';

type InClusterRequestsDeps = Pick<ControlDeps, 'store' | 'clock' | 'channel'> & {
  readonly onDue?: (at: number) => void;
};

/** The next review comes when as much time has passed again: most of what time mends is mended soon, and asking in vain has a price. */
const reviewAfterMs = { least: 1_000, most: 10 * 60_000 };

export function createInClusterRequests(deps: InClusterRequestsDeps, requests: Requests): InClusterRequests {
  const { store, clock, channel } = deps;

  const stored = async ({ tenant, clusterId }: ClusterRef, signal?: AbortSignal) => {
    const { pk, sk } = key.asks(tenant, clusterId);
    return store.get<AsksRecord>(pk, sk, signal);
  };

  const owned = (record: PeeringRecord | undefined, uid: string): record is PeeringRecord =>
    record?.spec.ask?.uid === uid;

  async function end(actor: Principal, cluster: ClusterRef, ask: PeeringAsk, signal?: AbortSignal): Promise<void> {
    const item = await requests.loadPair(cluster.tenant, cluster.clusterId, ask.provider, signal);
    if (!owned(item?.value, ask.uid) || isEnding(item.value)) return;
    const { id, ask: known } = item.value.spec;
    if (known && !ownsTerms(known)) await requests.release(cluster.tenant, id, ask.uid, signal);
    else await requests.unpeer(actor, id, {}, signal);
  }

  /** Returns why it was refused. Trouble that passes by itself is thrown, and the agent reports again. */
  async function pursue(
    actor: Principal,
    cluster: ClusterRef,
    ask: PeeringAsk,
    signal?: AbortSignal,
  ): Promise<{ readonly code: string; readonly message: string } | undefined> {
    const { name, uid, generation, owner } = ask;
    const before = await requests.loadPair(cluster.tenant, cluster.clusterId, ask.provider, signal);
    // It was ended on purpose: it takes a change of the object, or a new one, to ask again.
    if (owned(before?.value, uid) && isEnding(before.value) && before.value.spec.ask?.generation === generation)
      return undefined;
    try {
      const { provider, resources, network } = ask;
      const input = { consumer: cluster.clusterId, provider, resources, class: ask.class, network };
      await requests.request(actor, { ...input, ask: { name, uid, generation, ...(owner && { owner }) } }, signal);
      return undefined;
    } catch (error) {
      if (!(error instanceof Error) || codeOf(error) === undefined || isRetryable(error)) throw error;
      const { code } = error as AppError;
      return { code, message: code === awaited ? waitsFor(ask.provider) : error.message };
    }
  }

  /** `given`: what is asked for now; undefined: what is known. */
  async function settle(
    actor: Principal,
    cluster: ClusterRef,
    given: readonly PeeringAsk[] | undefined,
    signal?: AbortSignal,
  ): Promise<void> {
    const pursued: PeeringAsk[] = [];
    const pass = () => untilWritten(() => settleOnce(actor, cluster, { given, pursued }, signal), signal);
    // A cluster that joined before the wait was noted has missed it.
    if (await pass()) await pass();
  }

  interface Attempt {
    readonly given: readonly PeeringAsk[] | undefined;
    /** By this and earlier attempts: peerings that they made and that no object requests any more have to end. */
    readonly pursued: PeeringAsk[];
  }

  /** Whether a cluster is awaited from now on. Fails with `version_conflict` when another process settled meanwhile, which may know newer requests. */
  async function settleOnce(
    actor: Principal,
    cluster: ClusterRef,
    { given, pursued }: Attempt,
    signal?: AbortSignal,
  ): Promise<boolean> {
    const known = await stored(cluster, signal);
    const old = known?.value.asks ?? [];
    const asks = given ?? old;
    const gone = [...old, ...pursued].filter((ask) => !asks.some(({ uid }) => uid === ask.uid));
    for (const ask of [...gone, ...asks.filter(({ deleting }) => deleting)]) await end(actor, cluster, ask, signal);
    const next: AskRecord[] = [];
    for (const ask of asks) {
      const { refusal: _, ...plain } = ask as AskRecord;
      // Another provider under the same object cannot be (the field is immutable), but costs nothing to end.
      const earlier = old.find(({ uid }) => uid === ask.uid);
      if (earlier && earlier.provider !== ask.provider) await end(actor, cluster, earlier, signal);
      if (!ask.deleting) pursued.push(ask);
      const refused = ask.deleting ? undefined : await pursue(actor, cluster, plain, signal);
      next.push(refused ? { ...plain, refusal: { ...refused, at: sinceWhen(earlier, refused) } } : plain);
    }
    return write(cluster, known, next, signal);
  }

  const sinceWhen = (earlier: AskRecord | undefined, refused: { readonly message: string }): number =>
    earlier?.refusal?.message === refused.message ? earlier.refusal.at : clock.now();

  /** Stores the asks, plans the next review, and has the agent fetch its answers when they differ. */
  async function write(
    cluster: ClusterRef,
    known: Item<AsksRecord> | undefined,
    asks: readonly AskRecord[],
    signal?: AbortSignal,
  ): Promise<boolean> {
    const { tenant, clusterId } = cluster;
    const { pk, sk } = key.revision(tenant, clusterId);
    const revision = await store.get<RevisionRecord>(pk, sk, signal);
    const review = await planReview(cluster, asks, signal);
    const same = sameJson(known?.value.asks ?? [], asks);
    const next = (revision?.value.revision ?? 0) + 1;
    const counted: RevisionRecord = { revision: next, at: clock.now() };
    const bump: Op = revision
      ? { op: 'update', pk, sk, value: counted, ifVersion: revision.version }
      : { op: 'put', pk, sk, value: counted };
    const at = key.asks(tenant, clusterId);
    const save: Op = known
      ? { op: 'update', ...at, value: { asks }, ifVersion: known.version }
      : { op: 'put', ...at, value: { asks } };
    const unchanged: Op = { op: 'check', ...at, ifVersion: known?.version ?? 0 };
    if (!same || review.ops.length > 0)
      await store.transact([...review.ops, ...(same ? [unchanged] : [save, bump])], [], signal);
    if (!same) channel.ring(cluster, next);
    if (review.dueAt !== undefined) deps.onDue?.(review.dueAt);
    return review.more;
  }

  interface Review {
    readonly ops: readonly Op[];
    readonly dueAt?: number;
    /** A cluster is awaited that was not before. */
    readonly more: boolean;
  }

  async function planReview(
    { tenant, clusterId }: ClusterRef,
    asks: readonly AskRecord[],
    signal?: AbortSignal,
  ): Promise<Review> {
    const id = reviewOf(clusterId);
    const at = key.look(tenant, id);
    const look = await store.get<LookRecord>(at.pk, at.sk, signal);
    const refused = asks.flatMap(({ provider, refusal }) => (refusal ? [{ provider, since: refusal.at }] : []));
    const drop: Op[] = look ? [{ op: 'delete', ...key.due(tenant, look.value.at, id), ifVersion: 1 }] : [];
    if (refused.length === 0)
      return { ops: look ? [{ op: 'delete', ...at, ifVersion: look.version }, ...drop] : [], more: false };
    const now = clock.now();
    const { least, most } = reviewAfterMs;
    const soonest = Math.min(...refused.map(({ since }) => now + Math.min(Math.max(now - since, least), most)));
    const dueAt = look && look.value.at > now ? Math.min(look.value.at, soonest) : soonest;
    const awaits = [...new Set(refused.map(({ provider }) => provider))].sort();
    const more = awaits.some((provider) => !look?.value.awaits?.includes(provider));
    if (look?.value.at === dueAt && sameJson(look.value.awaits, awaits)) return { ops: [], more };
    const value: LookRecord = { at: dueAt, awaits };
    const due: Op = { op: 'put', ...key.due(tenant, dueAt, id), value: { asksOf: clusterId } satisfies DueRecord };
    return {
      ops: [
        look ? { op: 'update', ...at, value, ifVersion: look.version } : { op: 'put', ...at, value },
        ...(look?.value.at === dueAt ? [] : [...drop, due]),
      ],
      dueAt,
      more,
    };
  }

  async function review(cluster: ClusterRef, signal?: AbortSignal): Promise<void> {
    const { tenant, clusterId } = cluster;
    const { pk, sk } = key.cluster(tenant, clusterId);
    const asking = await store.get<ClusterRecord>(pk, sk, signal);
    const actor = { ...systemPrincipal(tenant), principal: `cluster/${clusterId}` };
    // A cluster that has left requests nothing any more; after joining again it sends its requests again.
    await settle(actor, cluster, asking?.value.state === 'joined' ? undefined : [], signal);
  }

  /** Clusters with unmet requests for this cluster, and itself if it has unmet requests. */
  async function askingClusters({ tenant, clusterId }: ClusterRef, signal?: AbortSignal): Promise<string[]> {
    const found: string[] = [];
    const query = { partition: partition.looks(tenant), ...withPrefix(reviewOf('')) };
    for await (const { sk, value } of everyItem<LookRecord>(store, query, signal)) {
      const asking = sk.slice(reviewOf('').length);
      if (asking === clusterId || (value.awaits?.includes(clusterId) ?? true)) found.push(asking);
    }
    return found;
  }

  return {
    async accept(agent, asks, signal) {
      await settle(agent, agent, asks, signal);
    },

    review,

    async reviewAbout(cluster, signal) {
      const failures: unknown[] = [];
      for (const clusterId of await askingClusters(cluster, signal)) {
        // The trouble of one must not keep the others waiting.
        await review({ ...cluster, clusterId }, signal).catch((error: unknown) => failures.push(error));
        signal?.throwIfAborted();
      }
      if (failures.length > 0) throw failures[0];
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

/** Of all refusals the one that ends by itself: when that cluster joins. */
const awaited: ErrorCode = 'cluster_unknown';

const waitsFor = (provider: string): string =>
  `waits for cluster ${provider}, which has not joined yet, and goes on as soon as it has; \`isthmus get clusters\` lists those that have`;

/** Under which name the review of a cluster's refused asks is planned, beside the looks at peerings. */
const reviewOf = (clusterId: string): string => `asks:${clusterId}`;

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
  if (!record) {
    const waits = ask.refusal === undefined || ask.refusal.code === awaited;
    return { ...base, phase: waits ? 'Proposed' : 'Failed', conditions: refused ? [refused] : [] };
  }
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
