/** Reports to users, as Kubernetes Events, what an object waits for: stalls at once, waits when they last. */
import type { EventRecorder } from '#kube/model/types.ts';
import { type KubeObject, keyOf } from '#shared/domain/kube-object.ts';
import type { Outcome } from '#shared/domain/outcome.ts';
import type { Clock } from '#shared/ports/clock.ts';

/** Shorter waits are the normal course of things and would only be noise. */
const patienceMs = 3_000;
/** Every wait of ours has a pass more often than this: an entry without one is about an object that went away while it waited. */
const forgetMs = 3_600_000;
const mostWaits = 10_000;

interface Wait {
  readonly on: string;
  readonly since: number;
  readonly seenAt: number;
}

export type ReportWait = (object: KubeObject, outcome: Outcome) => Outcome;

/** Returns the given outcome; a first wait is shortened so that the next pass comes when the wait is worth an Event. */
export function createReportWait(events: EventRecorder, clock: Clock): ReportWait {
  /** In the order of the last pass: the oldest first. */
  const waits = new Map<string, Wait>();

  function remember(key: string, wait: Wait): void {
    for (const [old, { seenAt }] of waits) {
      if (wait.seenAt - seenAt < forgetMs && waits.size < mostWaits) break;
      waits.delete(old);
    }
    waits.set(key, wait);
  }

  return (object, outcome) => {
    const key = object.metadata.uid ?? keyOf(object);
    const known = waits.get(key);
    waits.delete(key);
    if (outcome.kind === 'stalled') events.emit(object, 'Warning', outcome.reason, outcome.message);
    if (outcome.kind !== 'waiting') return outcome;
    const now = clock.now();
    const since = known?.on === outcome.on ? known.since : now;
    remember(key, { on: outcome.on, since, seenAt: now });
    const leftMs = patienceMs - (now - since);
    // An early pass: without another one in time, a long wait would not be reported until it ends.
    if (leftMs > 0) return { ...outcome, afterMs: Math.min(outcome.afterMs, leftMs) };
    events.emit(object, 'Normal', 'Waiting', `waiting for ${outcome.on}`);
    return outcome;
  };
}
