/** How every adapter says that a condition did not hold. */
import { AppError } from '#shared/errors/app-error.ts';
import type { Op } from './store.ts';

/** `detail.index` is the operation whose condition failed. Keys stay out of it: the error may reach a caller. */
export const conflict = (
  op: Op,
  index: number,
  { expected, found }: { readonly expected: number; readonly found: number },
): AppError =>
  new AppError(
    'version_conflict',
    `${op.op} expected version ${expected}, found ${found === 0 ? 'nothing' : `version ${found}`}`,
    {
      detail: { index, expected, found },
    },
  );
