/** Orders to delete data that rest on what a watch has shown some time ago. */
import { expect, test } from 'vitest';
import { runLateRetain } from './deletions.ts';

test.each([1, 2, 3])(
  'the data of a claim that went stays when its volume was retained before its provider answered again, although the watch has not shown that yet (%i)',
  async (seed) => {
    expect(await runLateRetain(seed)).toEqual([]);
  },
);
