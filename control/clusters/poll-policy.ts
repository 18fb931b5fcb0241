/**
 * How often the broker wants to hear of an agent, and from when on it counts as offline. Seldom while nothing happens, because the price of an
 * idle cluster hangs on it; often for a while after anything was asked of the cluster.
 */
import type { Intervals } from '#shared/schema/protocol/agent-protocol.ts';
import type { SeenRecord } from '../model/cluster.ts';
import type { RevisionRecord } from '../model/peering-records.ts';

export const defaultHeartbeatSeconds = 300;
const busy: Intervals = { heartbeatSeconds: 15, pollSeconds: 5 };
const idlePollSeconds = 60;
/** Longer than a peering takes to be made, or an end to be given up. */
export const busyForMs = 3 * 60_000;
/** What agents of protocol version 1 do; they ignore the interval they are given. */
const firstVersionSeconds = 30;
/** So many heartbeats must be missing. */
const missing = 3;
/** An agent whose doorbell closed has that long to come back before it counts as offline: longer than it waits at most before it tries. */
export const comeBackMs = 120_000;

/** `revision`: of the cluster's desired sets. */
export function intervalsOf(
  revision: RevisionRecord | undefined,
  now: number,
  idleHeartbeatSeconds: number,
): Intervals {
  const isBusy = revision?.at !== undefined && now - revision.at < busyForMs;
  const heartbeatSeconds = isBusy ? Math.min(busy.heartbeatSeconds, idleHeartbeatSeconds) : idleHeartbeatSeconds;
  const pollSeconds = Math.min(isBusy ? busy.pollSeconds : idlePollSeconds, heartbeatSeconds);
  return { heartbeatSeconds, pollSeconds };
}

/** What an agent of that version makes of it. */
export const everySeconds = ({ heartbeatSeconds }: Intervals, protocol = 1): number =>
  protocol >= 2 ? heartbeatSeconds : firstVersionSeconds;

/** From when on the agent counts as offline if it stays silent. */
export function offlineFrom({ at, every = firstVersionSeconds, lostAt }: SeenRecord): number {
  const silent = at + missing * every * 1_000;
  return lostAt === undefined ? silent : Math.min(silent, lostAt + comeBackMs);
}

/**
 * Whether being heard now must be noted. A heartbeat in time is left out now and then, which halves the writes; the agent must miss more than
 * one either way before it counts as offline. Other requests are rare, and people look at when the last one came.
 */
export function mustNote(seen: SeenRecord | undefined, heard: { now: number; every: number; ping: boolean }): boolean {
  if (!seen || seen.every !== heard.every || seen.lostAt !== undefined) return true;
  const unwrittenMs = heard.ping ? heard.every * 1_200 : Math.min(10_000, (heard.every * 1_000) / 3);
  return heard.now - seen.at >= unwrittenMs;
}
