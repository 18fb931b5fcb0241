/** What one pass over one key came to. Conditions, events, metrics and requeueing derive from it, never from steps inside. */
export type Outcome =
  | { readonly kind: 'settled' }
  | { readonly kind: 'again'; readonly afterMs: number }
  /** Another component or a person must act; `on` names both actor and action, in words for users. */
  | { readonly kind: 'waiting'; readonly on: string; readonly afterMs: number }
  /** A human must move; retrying alone will not help. */
  | { readonly kind: 'stalled'; readonly reason: string; readonly message: string };

export const settled: Outcome = { kind: 'settled' };
export const again = (afterMs: number): Outcome => ({ kind: 'again', afterMs });
export const waiting = (on: string, afterMs: number): Outcome => ({ kind: 'waiting', on, afterMs });
export const stalled = (reason: string, message: string): Outcome => ({ kind: 'stalled', reason, message });

/** Undefined: nothing to schedule, the next event decides. */
export function requeueAfterMs(outcome: Outcome): number | undefined {
  switch (outcome.kind) {
    case 'settled':
    case 'stalled':
      return undefined;
    case 'again':
    case 'waiting':
      return outcome.afterMs;
  }
}
