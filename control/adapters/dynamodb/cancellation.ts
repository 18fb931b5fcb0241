/** What a cancelled transaction says about each of its parts, and what to make of it. */
import type { CancellationReason } from '@aws-sdk/client-dynamodb';
import { AppError } from '#shared/errors/app-error.ts';
import type { Op } from '../../ports/store.ts';
import { conflict } from '../../ports/store-conflict.ts';
import { isExpired, numberOf } from './item.ts';

/** Nothing was decided about the conditions: the same transaction may succeed in a moment. */
const passing = new Set(['TransactionConflict', 'ThrottlingError', 'ProvisionedThroughputExceeded']);

export type Verdict =
  | { readonly kind: 'refused'; readonly error: AppError }
  /** A position of the outbox was taken away: take new ones and try again. */
  | { readonly kind: 'positions-lost' }
  | { readonly kind: 'passing'; readonly reason: string }
  | { readonly kind: 'unknown' };

/** The first parts are the operations, the others the events. A condition that did not hold outweighs everything that would pass. */
export function classify(reasons: readonly CancellationReason[], ops: readonly Op[], now: number): Verdict {
  for (const [index, op] of ops.entries()) {
    const reason = reasons[index];
    if (reason?.Code === 'ConditionalCheckFailed') {
      const found = reason.Item && !isExpired(reason.Item, now) ? (numberOf(reason.Item.ver) ?? 0) : 0;
      return { kind: 'refused', error: conflict(op, index, found) };
    }
    if (reason?.Code === 'ValidationError' && /size/i.test(reason.Message ?? '')) {
      return { kind: 'refused', error: tooLarge(reason.Message) };
    }
  }
  const codes = reasons.map(({ Code }) => Code ?? 'None').filter((code) => code !== 'None');
  if (codes.includes('ConditionalCheckFailed')) return { kind: 'positions-lost' };
  const [first] = codes;
  if (first !== undefined && codes.every((code) => passing.has(code))) return { kind: 'passing', reason: first };
  return { kind: 'unknown' };
}

export const tooLarge = (message: string | undefined): AppError =>
  new AppError(
    'too_large',
    `the table takes at most 400 KB per item and 4 MB per transaction: ${message ?? ''}`.trim(),
  );
