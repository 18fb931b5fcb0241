/** Both peer again, this time with storage: a claim in each cluster, a volume that goes there and back while it is written to, and what the provider keeps when the peering ends again. */
import { describe, test } from 'vitest';
import { describeMoves } from '../../storage/moves.ts';
import { lendStorage } from '../../storage/storage-stage.ts';
import { claimHere, claimThere, keptVolume, rescuedVolume } from '../../storage/walk.ts';
import type { Stage } from '../stage.ts';

export function volumes(on: () => Stage): void {
  describe('a second peering', () => {
    test('lends storage, too', () => lendStorage(on()));
  });
  claimHere(on);
  claimThere(on);
  describeMoves(on, { everyEnd: false });
  keptVolume(on, { size: '32Mi' });
  rescuedVolume(on);
}
