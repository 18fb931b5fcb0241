/**
 * The minutes of each peering: round trip, loss and throughput of its link, and at a provider what of the grant is in use. Read from what caches have
 * anyway, kept until a report takes it along.
 */
import { latencyMs } from '#shared/domain/latency.ts';
import type { Clock } from '#shared/ports/clock.ts';
import type { ObservedSet } from '#shared/schema/protocol/agent-protocol.ts';
import { type ObservedData, readData } from '#shared/schema/protocol/observed-data.ts';
import {
  mostSamplesInReport,
  mostSamplesOfPeering,
  type PeeringSamples,
  type Sample,
} from '#shared/schema/protocol/samples.ts';

const minuteMs = 60_000;
/** A counter that was not seen for longer says nothing of the minute in which it is seen again. */
const longestGapMs = 90_000;

export type Usage = Pick<Sample, 'cpuGranted' | 'cpuUsed' | 'memoryGranted' | 'memoryUsed'>;

export interface Samples {
  /** Looks at what is there now. Called with every change that a report might have; several looks in a minute make it more exact. */
  note(sets: readonly ObservedSet[]): void;
  /** Whole minutes of this peering that no broker has yet. */
  waiting(peering: string): boolean;
  /** For a report of these peerings. The same again until `acknowledge`. */
  take(peerings: readonly string[]): PeeringSamples[];
  acknowledge(sent: readonly PeeringSamples[]): void;
}

interface Minute {
  readonly at: number;
  rttSum: number;
  rtts: number;
  loss: number | undefined;
  received: number;
  sent: number;
  /** For how long the counters were followed. */
  countedMs: number;
  usage: Usage;
}

interface Counters {
  readonly received: number;
  readonly sent: number;
  readonly at: number;
}

interface Series {
  minute: Minute | undefined;
  counters: Counters | undefined;
  whole: Sample[];
}

/** `usage`: what this cluster grants the consumer of the peering, and what of it is in use; undefined where it is not the provider. */
export function createSamples(clock: Clock, usage: (set: ObservedSet) => Usage | undefined): Samples {
  const series = new Map<string, Series>();

  function noteOne(set: ObservedSet, now: number): void {
    const link = linkOf(set);
    const used = usage(set);
    const own: Series = series.get(set.peering) ?? { minute: undefined, counters: undefined, whole: [] };
    const at = Math.floor(now / minuteMs) * minuteMs;
    if (own.minute !== undefined && own.minute.at !== at) {
      own.whole = [...own.whole, sampleOf(own.minute)].slice(-mostSamplesOfPeering);
      own.minute = undefined;
    }
    if (link === undefined && used === undefined) return;
    own.minute ??= { at, rttSum: 0, rtts: 0, loss: undefined, received: 0, sent: 0, countedMs: 0, usage: {} };
    own.minute.usage = used ?? {};
    own.counters = link === undefined ? undefined : noteLink(own.minute, own.counters, link, now);
    series.set(set.peering, own);
  }

  return {
    note(sets) {
      const now = clock.now();
      for (const set of sets) noteOne(set, now);
      const alive = new Set(sets.map(({ peering }) => peering));
      for (const peering of series.keys()) if (!alive.has(peering)) series.delete(peering);
    },
    waiting: (peering) => (series.get(peering)?.whole.length ?? 0) > 0,
    take(peerings) {
      let left = mostSamplesInReport;
      return peerings.flatMap((peering) => {
        const samples = (series.get(peering)?.whole ?? []).slice(0, left);
        left -= samples.length;
        return samples.length === 0 ? [] : [{ peering, samples }];
      });
    },
    acknowledge(sent) {
      for (const { peering, samples } of sent) {
        const own = series.get(peering);
        const last = samples.at(-1)?.at ?? 0;
        if (own !== undefined) own.whole = own.whole.filter(({ at }) => at > last);
      }
    },
  };
}

/** Undefined while there is no link. */
function linkOf(set: ObservedSet): ObservedData<'Connection'> | undefined {
  const found = set.objects.find(({ kind }) => kind === 'Connection');
  return found && readData('Connection', found.data).data;
}

/** Returns the counters from which the next look goes on. */
function noteLink(
  minute: Minute,
  before: Counters | undefined,
  { value, latency, packetLoss, receivedBytes, sentBytes }: ObservedData<'Connection'>,
  now: number,
): Counters | undefined {
  const rtt = value === 'Connected' ? latencyMs(latency) : undefined;
  if (rtt !== undefined) {
    minute.rttSum += rtt;
    minute.rtts += 1;
  }
  if (packetLoss !== undefined) minute.loss = Math.max(minute.loss ?? 0, packetLoss);
  if (receivedBytes === undefined || sentBytes === undefined) return undefined;
  const found: Counters = { received: receivedBytes, sent: sentBytes, at: now };
  if (before === undefined) return found;
  // A device that was made again counts from 0.
  const isSame = found.received >= before.received && found.sent >= before.sent;
  if (isSame && now - before.at <= longestGapMs) {
    minute.received += found.received - before.received;
    minute.sent += found.sent - before.sent;
    minute.countedMs += now - before.at;
  }
  return found;
}

function sampleOf({ at, rttSum, rtts, loss, received, sent, countedMs, usage }: Minute): Sample {
  const perSecond = (bytes: number): number => Math.round((bytes * 1_000) / countedMs);
  return {
    at: at / 1_000,
    ...(rtts === 0 ? {} : { rttMicros: Math.round((rttSum / rtts) * 1_000) }),
    ...(loss === undefined ? {} : { packetLoss: loss }),
    ...(countedMs === 0 ? {} : { received: perSecond(received), sent: perSecond(sent) }),
    ...usage,
  };
}
