/** How every adapter says that a condition did not hold. */
import { AppError } from '#shared/errors/app-error.ts';
import type { Op } from './store.ts';

type Versioned = Exclude<Op, { readonly op: 'add' | 'set' | 'clear' }>;

/** Whether it goes by the version that is found. */
export const isVersioned = (op: Op): op is Versioned => op.op !== 'add' && op.op !== 'set' && op.op !== 'clear';

/** 0: the item must be absent. */
export const expectedVersion = (op: Versioned): number => (op.op === 'put' ? 0 : op.ifVersion);

/** `detail.index` is the operation whose condition failed. Keys stay out of it: the error may reach a caller. `found`: its version, 0 for an absent item. */
export function conflict(op: Op, index: number, found: number): AppError {
  if (op.op === 'add') {
    return new AppError('version_conflict', `adding ${op.by} would make it more than ${op.atMost}`, {
      detail: { index, atMost: op.atMost },
    });
  }
  const expected = isVersioned(op) ? expectedVersion(op) : found;
  return new AppError(
    'version_conflict',
    `${op.op} expected version ${expected}, found ${found === 0 ? 'nothing' : `version ${found}`}`,
    { detail: { index, expected, found } },
  );
}
