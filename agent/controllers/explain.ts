/** Tells users, as Kubernetes Events, what an object waits for: stalls at once, waits when they last. */
import type { EventRecorder } from '#agent/kube/types.ts';
import { type KubeObject, keyOf } from '#shared/domain/kube-object.ts';
import type { Outcome } from '#shared/domain/outcome.ts';
import type { Clock } from '#shared/ports/clock.ts';

/** Shorter waits are the normal course of things and would only be noise. */
const patienceMs = 3_000;
const mostWaits = 10_000;

export type Explain = (object: KubeObject, outcome: Outcome) => Outcome;

/** Returns the outcome it was given, shortening a first wait so that it is looked at again when it begins to matter. */
export function createExplain(events: EventRecorder, clock: Clock): Explain {
  const waits = new Map<string, { readonly on: string; readonly since: number }>();
  return (object, outcome) => {
    const key = object.metadata.uid ?? keyOf(object);
    if (outcome.kind !== 'waiting') waits.delete(key);
    if (outcome.kind === 'stalled') events.emit(object, 'Warning', outcome.reason, outcome.message);
    if (outcome.kind !== 'waiting') return outcome;
    const known = waits.get(key);
    if (known?.on !== outcome.on) {
      // Objects that went away while they waited are never heard of again.
      if (waits.size >= mostWaits) waits.clear();
      waits.set(key, { on: outcome.on, since: clock.now() });
      return { ...outcome, afterMs: Math.min(outcome.afterMs, patienceMs) };
    }
    const leftMs = patienceMs - (clock.now() - known.since);
    // Somebody looked early: without another look in time, a long wait would go unsaid until it ends.
    if (leftMs > 0) return { ...outcome, afterMs: Math.min(outcome.afterMs, leftMs) };
    events.emit(object, 'Normal', 'Waiting', `waiting for ${outcome.on}`);
    return outcome;
  };
}
