/** The two answers by which a conditional write learns that its object is not the one that was read. */
import { codeOf } from '#shared/errors/app-error.ts';

/** Whether a write failed because its object has changed or was deleted since it was read: read it again. */
export function isChangedOrGone(error: unknown): boolean {
  const code = codeOf(error);
  return code === 'kube_conflict' || code === 'kube_not_found';
}
