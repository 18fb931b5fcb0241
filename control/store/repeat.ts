/**
 * Requests that may come twice under one Idempotency-Key. A use case puts `remembered` into the transaction that makes its change, hence what is
 * remembered is exactly what was made, whenever the process dies; and it begins with `earlier`, which is what it remembered then.
 */
import type { Repeat } from '../access/caller.ts';
import type { Op } from '../ports/store.ts';

interface MayRepeat {
  readonly repeat?: Repeat;
}

/** What an earlier attempt at the same request made. `T` is what the same use case gave to `remembered`. */
export const earlier = <T>({ repeat }: MayRepeat): T | undefined => repeat?.earlier as T | undefined;

/** `result`: JSON. It is sealed when the route says that its answer holds a secret. */
export const remembered = ({ repeat }: MayRepeat, result: unknown): Op[] =>
  repeat === undefined ? [] : [repeat.remember(result)];
