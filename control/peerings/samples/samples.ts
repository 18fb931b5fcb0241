/** Minutes of peerings as the agents at both ends measured them: kept for a day, written with reports and never by themselves. */
import type { PeeringRole } from '#shared/schema/protocol/agent-protocol.ts';
import type { PeeringSamples } from '#shared/schema/protocol/samples.ts';
import type { AgentCaller, Caller } from '../../access/caller.ts';
import type { ControlDeps } from '../../model/deps.ts';
import type { Throughput } from '../../model/link.ts';
import type { PairRecord, PeeringSpec } from '../../model/peering-records.ts';
import { type Op, withPrefix } from '../../ports/store.ts';
import { key, partition, prefix } from '../../store/keys.ts';
import { untilWritten } from '../../store/until-written.ts';
import { tenantOf } from '../cross-tenant/copies.ts';
import { gathered, type HourRecord, hourMs, hourOf, type Point, pointsOf, rowOf, withRows } from './points.ts';

const spans = {
  hour: { ms: hourMs, stepMs: 60_000 },
  day: { ms: 24 * hourMs, stepMs: 15 * 60_000 },
} as const;
export type Span = keyof typeof spans;

/** Clocks of clusters and of the broker differ a little. */
const aheadMs = 120_000;

export interface SeriesView {
  readonly from: number;
  readonly to: number;
  readonly stepMs: number;
  /** By end. Absent: the cluster of another tenant, whose samples are that tenant's. */
  readonly consumer?: readonly Point[];
  readonly provider?: readonly Point[];
}

type SampleDeps = Pick<ControlDeps, 'store' | 'clock'>;

/** Drops what is of no peering of this cluster, older than a day, or of a time to come. */
export async function storeSamples(
  { store, clock }: SampleDeps,
  { tenant, clusterId }: AgentCaller,
  reported: readonly PeeringSamples[],
  signal?: AbortSignal,
): Promise<void> {
  const now = clock.now();
  for (const { peering, samples } of reported) {
    const kept = samples.filter(({ at }) => at * 1_000 > now - spans.day.ms && at * 1_000 <= now + aheadMs);
    if (kept.length === 0) continue;
    const index = key.peeringOf(tenant, clusterId, peering);
    if ((await store.get<PairRecord>(index.pk, index.sk, signal)) === undefined) continue;
    for (const hour of new Set(kept.map(({ at }) => hourOf(at * 1_000)))) {
      const rows = kept.filter(({ at }) => hourOf(at * 1_000) === hour).map(rowOf);
      const place = key.samples(tenant, clusterId, peering, hour);
      const expiresAt = hour + hourMs + spans.day.ms;
      await untilWritten(async () => {
        const item = await store.get<HourRecord>(place.pk, place.sk, signal);
        const value: HourRecord = { rows: withRows(item?.value.rows ?? [], rows) };
        const write = { ...place, value, expiresAt };
        const op: Op = item ? { op: 'update', ...write, ifVersion: item.version } : { op: 'put', ...write };
        await store.transact([op], [], signal);
      }, signal);
    }
  }
}

/** Reports come every five minutes. What was measured longer ago than two of them is no present figure. */
const presentMs = 10 * 60_000;
const isPresent = (at: number, now: number): boolean => at + 60_000 > now - presentMs && at <= now + aheadMs;

/** By peering: of the last minute that each report has. Undefined: not known, or long ago. */
export const throughputIn = (
  reported: readonly PeeringSamples[],
  now: number,
): ReadonlyMap<string, Throughput | undefined> =>
  new Map(
    reported.map(({ peering, samples }) => {
      const { at = 0, received, sent } = samples.at(-1) ?? {};
      const isKnown = received !== undefined && sent !== undefined && isPresent(at * 1_000, now);
      return [peering, isKnown ? { received, sent } : undefined];
    }),
  );

/** Whether the cluster has reported a minute of this peering lately. */
export async function hasPresentSamples(
  { store, clock }: SampleDeps,
  { tenant, clusterId }: AgentCaller,
  peering: string,
  signal?: AbortSignal,
): Promise<boolean> {
  const now = clock.now();
  for (const hour of new Set([hourOf(now), hourOf(now - presentMs - 60_000)])) {
    const { pk, sk } = key.samples(tenant, clusterId, peering, hour);
    const item = await store.get<HourRecord>(pk, sk, signal);
    if (item && pointsOf(hour, item.value).some(({ at }) => isPresent(at, now))) return true;
  }
  return false;
}

/** May miss what came within the last second. */
export async function readSamples(
  { store, clock }: SampleDeps,
  caller: Caller,
  spec: PeeringSpec,
  span: Span,
  signal?: AbortSignal,
): Promise<SeriesView> {
  const { ms, stepMs } = spans[span];
  const to = Math.ceil(clock.now() / stepMs) * stepMs;
  const from = to - ms;
  const end = async (role: PeeringRole): Promise<Partial<Record<PeeringRole, readonly Point[]>>> => {
    if (tenantOf(caller.tenant, spec, role) !== caller.tenant) return {};
    const all = withPrefix(prefix.samples(spec.id));
    const { items } = await store.query<HourRecord>(
      {
        partition: partition.cluster(caller.tenant, spec[role]),
        from: key.samples(caller.tenant, spec[role], spec.id, hourOf(from)).sk,
        to: all.to,
        limit: 2 + ms / hourMs,
        eventual: true,
      },
      signal,
    );
    const points = items
      .flatMap(({ sk, value }) => pointsOf(Number(sk.slice(all.from.length)), value))
      .filter(({ at }) => at >= from && at < to);
    return { [role]: gathered(points, stepMs) };
  };
  return { from, to, stepMs, ...(await end('consumer')), ...(await end('provider')) };
}
