/** When to ping, and what the answers say about the link: alive or not, how far, how lossy. No clock, no socket: every time is a parameter. */

export const pingTiming = {
  intervalMs: 1_000,
  /** While the last ping has no answer. */
  hurryMs: 250,
  /** Reference 5.5: silence for longer is an Error. */
  errorMs: 10_000,
  /** How many of the last pings count for the loss. */
  window: 100,
} as const;

interface Sent {
  readonly timeStamp: string;
  readonly at: number;
  /** The same by the precise clock. */
  readonly preciseAt: number;
}

export interface PingState {
  readonly startedAt: number;
  readonly sentAt?: number;
  readonly answeredAt?: number;
  /** Of the last answer. */
  readonly rttMs?: number;
  /** Smoothed, as TCP does it. */
  readonly smoothRttMs?: number;
  /** Without an answer yet, oldest first. */
  readonly pending: readonly Sent[];
  /** Of the last pings that were answered (true) or given up (false), oldest first. None from before the first answer: there was no link to lose them. */
  readonly outcomes: readonly boolean[];
}

export type LinkValue = 'Connected' | 'Connecting' | 'Error';

export const startPings = (now: number): PingState => ({ startedAt: now, pending: [], outcomes: [] });

/** When the next ping is to be sent; may be in the past. */
export const nextPingAt = ({ sentAt, startedAt, pending }: PingState): number =>
  sentAt === undefined ? startedAt : sentAt + (pending.length > 0 ? pingTiming.hurryMs : pingTiming.intervalMs);

/** `preciseNow`: milliseconds with a fraction, from any beginning, the same one for sending and hearing. */
export function pingSent(state: PingState, timeStamp: string, now: number, preciseNow = now): PingState {
  const lost = state.pending.filter(({ at }) => now - at > pingTiming.errorMs);
  const pending = [...state.pending.slice(lost.length), { timeStamp, at: now, preciseAt: preciseNow }];
  const outcomes = state.answeredAt === undefined ? state.outcomes : remember(state.outcomes, lost.length, false);
  return { ...state, sentAt: now, pending, outcomes };
}

/** The same state when the time stamp is none of ours, or was answered, or a later ping was answered before. */
export function pongReceived(state: PingState, timeStamp: string, now: number, preciseNow = now): PingState {
  const index = state.pending.findIndex((sent) => sent.timeStamp === timeStamp);
  const sent = state.pending[index];
  if (sent === undefined) return state;
  const rttMs = Math.max(0, preciseNow - sent.preciseAt);
  return {
    ...state,
    answeredAt: now,
    rttMs,
    smoothRttMs: state.smoothRttMs === undefined ? rttMs : state.smoothRttMs + (rttMs - state.smoothRttMs) / 8,
    pending: state.pending.slice(index + 1),
    outcomes: remember(remember(state.outcomes, state.answeredAt === undefined ? 0 : index, false), 1, true),
  };
}

/** `Connecting` is only the time before the first answer or the first verdict. */
export function linkValue({ startedAt, answeredAt }: PingState, now: number): LinkValue {
  if (now - (answeredAt ?? startedAt) > pingTiming.errorMs) return 'Error';
  return answeredAt === undefined ? 'Connecting' : 'Connected';
}

/** Percent of the last pings; undefined before there was any. */
export function packetLoss({ outcomes }: PingState): number | undefined {
  if (outcomes.length === 0) return undefined;
  return Math.round((100 * outcomes.filter((answered) => !answered).length) / outcomes.length);
}

/** As Liqo prints it (reference 1.6). */
export function latencyText(rttMs: number | undefined): string {
  if (rttMs === undefined || rttMs <= 0) return 'N/A';
  return rttMs >= 1 ? `${Math.floor(rttMs)}ms` : `${Math.max(1, Math.floor(rttMs * 1000))}μs`;
}

function remember(outcomes: readonly boolean[], count: number, answered: boolean): readonly boolean[] {
  if (count === 0) return outcomes;
  return [...outcomes, ...Array.from({ length: count }, () => answered)].slice(-pingTiming.window);
}
