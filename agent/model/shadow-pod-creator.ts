/** The label that names the consumer of a shadow pod. */
import { createHash } from 'node:crypto';

const longestLabel = 63;

/** The label value that stands for a user, as Liqo writes it; what does not fit a label is shortened with a hash, never cut. */
export function creatorOf(userName: string): string {
  const escaped = userName.replace(/[^A-Za-z0-9_.-]/g, '-');
  if (escaped.length <= longestLabel && /^[A-Za-z0-9](.*[A-Za-z0-9])?$/.test(escaped)) return escaped;
  const hash = createHash('sha256').update(userName).digest('hex').slice(0, 12);
  return `u${escaped.slice(0, 48)}-${hash}`;
}
