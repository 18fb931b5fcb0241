/** Identifiers from a counter, so that a generated history replays exactly. Not for anything that must be secret. */
import { createHash } from 'node:crypto';
import type { Ids } from '#shared/ports/ids.ts';

export function countingIds(seed = 'ids'): Ids {
  let count = 0;
  return {
    next(prefix) {
      count += 1;
      return `${prefix}_${String(count).padStart(26, '0')}`;
    },
    bytes(length) {
      count += 1;
      const blocks = Array.from({ length: Math.ceil(length / 32) }, (_, i) =>
        createHash('sha256').update(`${seed}/${count}/${i}`).digest(),
      );
      return new Uint8Array(Buffer.concat(blocks).subarray(0, length));
    },
  };
}
