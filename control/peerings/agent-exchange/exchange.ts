/** The agents' side: what they report, what they should make so, what they have done. */
import { sameJson } from '#shared/domain/json-equality.ts';
import {
  type ClusterFacts,
  type DesiredAnswer,
  type DesiredSet,
  type ObservedAnswer,
  type ObservedBatch,
  type ObservedSet,
  protocolVersion,
} from '#shared/schema/protocol/agent-protocol.ts';
import type { AgentCaller } from '../../access/caller.ts';
import { auditOps, eventOf } from '../../audit/record.ts';
import { seenFrom } from '../../clusters/cluster.ts';
import { defaultHeartbeatSeconds, intervalsOf } from '../../clusters/poll-policy.ts';
import type { ClusterRecord } from '../../model/cluster.ts';
import type { Coordinator } from '../../model/coordinator.ts';
import type { ControlDeps } from '../../model/deps.ts';
import type { DesiredRecord, ObservedRecord, PeeringRecord, RevisionRecord } from '../../model/peering-records.ts';
import type { InClusterRequests } from '../../model/peering-requests.ts';
import { type Op, withPrefix } from '../../ports/store.ts';
import { everyItem } from '../../store/every-item.ts';
import { key, partition, prefix } from '../../store/keys.ts';
import { untilWritten } from '../../store/until-written.ts';
import { unreadable } from '../core/observed.ts';
import { tenantOf } from '../cross-tenant/copies.ts';
import { hasPresentSamples, storeSamples, throughputIn } from '../samples/samples.ts';

export interface Exchange {
  /**
   * Stores what changed and looks at the peerings concerned. Answers with the newest desired revision, so that an agent without a doorbell
   * sees that it must fetch.
   */
  observe(agent: AgentCaller, batch: ObservedBatch, signal?: AbortSignal): Promise<ObservedAnswer>;
  /** Sets changed after `after`; all of them when `after` is 0 or unknown here. */
  desired(agent: AgentCaller, after: number, signal?: AbortSignal): Promise<DesiredAnswer>;
}

type Throughputs = ReturnType<typeof throughputIn>;
type ExchangeDeps = Pick<ControlDeps, 'store' | 'clock' | 'ids' | 'log' | 'heartbeatSeconds'>;

/** Sets stored by one transaction. */
const chunkSize = 40;

export function createExchange(
  deps: ExchangeDeps,
  {
    coordinator,
    inClusterRequests,
  }: { readonly coordinator: Coordinator; readonly inClusterRequests: InClusterRequests },
): Exchange {
  const { store, log } = deps;

  async function counted({ tenant, clusterId }: AgentCaller, signal?: AbortSignal): Promise<RevisionRecord> {
    const { pk, sk } = key.revision(tenant, clusterId);
    return (await store.get<RevisionRecord>(pk, sk, signal))?.value ?? { revision: 0 };
  }
  const heartbeatSeconds = deps.heartbeatSeconds ?? defaultHeartbeatSeconds;
  const answered = (record: RevisionRecord) => ({
    revision: record.revision,
    ...intervalsOf(record, deps.clock.now(), heartbeatSeconds),
    protocolVersion,
  });

  /** Facts as reported, if any were, and from where. */
  async function storeFacts(
    agent: AgentCaller,
    reported: ClusterFacts | undefined,
    signal?: AbortSignal,
  ): Promise<boolean> {
    const { tenant, clusterId } = agent;
    const at = key.cluster(tenant, clusterId);
    const item = await store.get<ClusterRecord>(at.pk, at.sk, signal);
    if (!item) return false;
    const facts = reported ?? item.value.facts;
    const publicAddresses = seenFrom(agent.from, item.value.publicAddresses);
    const sameFacts = sameJson(item.value.facts, facts);
    if (sameFacts && sameJson(item.value.publicAddresses ?? [], publicAddresses)) return false;
    const subject = `cluster/${clusterId}`;
    const { policies } = item.value.facts;
    const policiesChanged = !sameJson(policies, facts.policies);
    const audit = auditOps(deps, agent, {
      action: 'cluster.policies',
      subject,
      before: policies,
      after: facts.policies,
    });
    await store.transact(
      [
        {
          op: 'update',
          ...at,
          value: { ...item.value, facts, publicAddresses } satisfies ClusterRecord,
          ifVersion: item.version,
        },
        ...(policiesChanged ? audit : []),
      ],
      sameFacts ? [] : [eventOf(deps, tenant, 'cluster.facts-changed', subject, { policiesChanged })],
      signal,
    );
    return true;
  }

  /** Undefined: nothing new, or not this cluster's to report. */
  async function storeSet(
    agent: AgentCaller,
    set: ObservedSet,
    throughputs: Throughputs,
    signal?: AbortSignal,
  ): Promise<Op | undefined> {
    const { tenant, clusterId } = agent;
    const peeringAt = key.peering(tenant, set.peering);
    const peering = await store.get<PeeringRecord>(peeringAt.pk, peeringAt.sk, signal);
    const spec = peering?.value.spec;
    if (!spec || spec[set.role] !== clusterId || tenantOf(tenant, spec, set.role) !== tenant) {
      log.warn('report about a peering that this cluster has no part in', {
        tenant,
        cluster: clusterId,
        peering: set.peering,
      });
      return undefined;
    }
    if (peering.value.state.removal?.finishedAt !== undefined) return undefined;
    const at = key.observed(tenant, clusterId, set.peering);
    const item = await store.get<ObservedRecord & { readonly signedAt?: number }>(at.pk, at.sk, signal);
    const { signedAt: known = 0, ...before } = item?.value ?? {};
    // A request that was overtaken by a later one of the same agent says nothing any more.
    if (agent.signedAt !== undefined && agent.signedAt < known) return undefined;
    // A restarted agent counts from 0 again until it has applied everything once more; what it had applied stays applied.
    // And no agent can have applied what is yet to be written, even if it reports so.
    const applied = Math.min(
      Math.max(set.appliedRevision, item?.value.appliedRevision ?? 0),
      (await counted(agent, signal)).revision,
    );
    const throughput = throughputs.has(set.peering)
      ? throughputs.get(set.peering)
      : await stillPresent(agent, item?.value, signal);
    const value: ObservedRecord = { ...set, appliedRevision: applied, ...(throughput ? { throughput } : {}) };
    if (item && sameJson(before, value)) return undefined;
    const left = unreadable(set);
    if (left.length > 0)
      log.warn('fields of a report were left out', { tenant, cluster: clusterId, peering: set.peering, fields: left });
    const kept = { ...value, signedAt: agent.signedAt ?? known };
    return item ? { op: 'update', ...at, value: kept, ifVersion: item.version } : { op: 'put', ...at, value: kept };
  }

  /** What was reported last stays for a report within the same minute. Of an agent that measures no more it does not. */
  async function stillPresent(
    agent: AgentCaller,
    known: ObservedRecord | undefined,
    signal?: AbortSignal,
  ): Promise<ObservedRecord['throughput']> {
    if (known?.throughput === undefined) return undefined;
    return (await hasPresentSamples(deps, agent, known.peering, signal)) ? known.throughput : undefined;
  }

  async function storeSets(
    agent: AgentCaller,
    sets: readonly ObservedSet[],
    throughputs: Throughputs,
    signal?: AbortSignal,
  ): Promise<readonly string[]> {
    const changed = new Set<string>();
    for (let start = 0; start < sets.length; start += chunkSize) {
      const chunk = sets.slice(start, start + chunkSize);
      const stored = await untilWritten(async () => {
        const ops: Op[] = [];
        const peerings: string[] = [];
        for (const set of chunk) {
          const stored = await storeSet(agent, set, throughputs, signal);
          if (!stored) continue;
          ops.push(stored);
          peerings.push(set.peering);
        }
        if (ops.length === 0) return peerings;
        const event = eventOf(deps, agent.tenant, 'cluster.observed', `cluster/${agent.clusterId}`, { peerings });
        await store.transact(ops, [event], signal);
        return peerings;
      }, signal);
      for (const peering of stored) changed.add(peering);
    }
    return [...changed];
  }

  return {
    async observe(agent, batch, signal) {
      const { facts, samples = [] } = batch;
      const news = facts !== undefined || batch.sets.length > 0;
      const factsChanged = news && (await untilWritten(() => storeFacts(agent, facts, signal), signal));
      const changed = await storeSets(
        agent,
        lastPerPeering(batch.sets),
        throughputIn(samples, deps.clock.now()),
        signal,
      );
      await storeSamples(deps, agent, samples, signal);
      if (factsChanged) await coordinator.lookAtCluster(agent, signal);
      else for (const peering of changed) await coordinator.look(agent.tenant, peering, signal);
      if (batch.asks) await inClusterRequests.accept(agent, batch.asks, signal);
      return answered(await counted(agent, signal));
    },

    async desired(agent, after, signal) {
      const record = await counted(agent, signal);
      const { revision } = record;
      const full = after <= 0 || after > revision;
      const answers = await inClusterRequests.answers(agent, signal);
      // Read after the revision: what was written since may be among the sets, and comes again next time.
      const sets = !full && after === revision ? [] : await readSets(agent, full ? 0 : after, signal);
      return { ...answered(record), full, sets, answers };
    },
  };

  async function readSets(
    { tenant, clusterId }: AgentCaller,
    after: number,
    signal?: AbortSignal,
  ): Promise<DesiredSet[]> {
    const sets: DesiredSet[] = [];
    const query = { partition: partition.cluster(tenant, clusterId), ...withPrefix(prefix.desired) };
    for await (const { value } of everyItem<DesiredRecord>(store, query, signal)) {
      const { absentRevision: _, ...set } = value;
      if (set.revision > after) sets.push({ ...set, objects: [...set.objects] });
    }
    return sets.sort((a, b) => a.revision - b.revision);
  }
}

/** One key may be written once per transaction; of two reports in one batch the later one counts. */
const lastPerPeering = (sets: readonly ObservedSet[]): ObservedSet[] => [
  ...new Map(sets.map((set) => [set.peering, set])).values(),
];
