/** Claims whose end is not to be the end of their data. */
import { expect, test } from 'vitest';
import { runChosenAfterAll, runLateRetain, runLiqoctlMove } from './deletions.ts';

test.each([1, 2, 3])(
  'the data of a claim that went stays when its volume was retained before its provider answered again, although the watch has not shown that yet (%i)',
  async (seed) => {
    expect(await runLateRetain(seed)).toEqual([]);
  },
);

test.each(['local', 'milan'] as const)(
  'B130 the data of a claim that `liqoctl move volume` deletes becomes a RetainedVolume, whether agents live or die before and after every write (%s)',
  async (at) => {
    const { faults, survived } = await runLiqoctlMove(at);
    expect(faults).toEqual([]);
    expect(survived).toEqual(
      expect.arrayContaining([
        'rome PersistentVolume mergePatch',
        'rome PersistentVolume delete',
        'rome PersistentVolumeClaim delete',
      ]),
    );
  },
);

test('data stays when its claim had been ordered to be deleted before it was bound, and the order was never carried out', async () => {
  expect(await runChosenAfterAll()).toEqual([]);
});
