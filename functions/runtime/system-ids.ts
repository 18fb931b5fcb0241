/** The broker's identifiers, from the system's random source. */
import { randomBytes } from 'node:crypto';
import { timeOrderedIds } from '#shared/domain/time-ordered-ids.ts';
import type { Ids } from '#shared/ports/ids.ts';

export const createSystemIds = (now: () => number): Ids => timeOrderedIds(now, randomBytes);
