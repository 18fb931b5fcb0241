/** Both peer again, this time with storage: a claim in each cluster, and what the provider keeps of its one when the peering ends again. */
import { describe, test } from 'vitest';
import { lendStorage } from '../../storage/storage-stage.ts';
import { claimHere, claimThere, keptVolume, rescuedVolume } from '../../storage/walk.ts';
import type { Stage } from '../stage.ts';

export function volumes(on: () => Stage): void {
  describe('a second peering', () => {
    test('lends storage, too', () => lendStorage(on()));
  });
  claimHere(on);
  claimThere(on);
  keptVolume(on, { size: '32Mi' });
  rescuedVolume(on);
}
