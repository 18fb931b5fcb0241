/** Identifiers from the system's clock and random source. */
import { randomBytes } from 'node:crypto';
import { timeOrderedIds } from '#shared/domain/time-ordered-ids.ts';
import type { Ids } from '#shared/ports/ids.ts';

export const createIds = (now: () => number = Date.now, random: (length: number) => Uint8Array = randomBytes): Ids =>
  timeOrderedIds(now, random);

export const systemIds: Ids = createIds();
