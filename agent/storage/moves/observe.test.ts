import { expect, test } from 'vitest';
import type { KubeApi } from '#kube/model/types.ts';
import { type PersistentVolume, persistentVolumes } from '#shared/domain/core-kinds.ts';
import { remoteVolumeDriver, volumeHandle } from '#shared/domain/storage-keys.ts';
import { ManualClock } from '#shared/ports/clock.ts';
import type { VolumeMove } from '#shared/schema/isthmus/volume-move.ts';
import { createObserver, type MoveDeps } from './observe.ts';

const left = {
  metadata: { name: 'pvc-1' },
  spec: {
    csi: {
      driver: remoteVolumeDriver,
      volumeHandle: volumeHandle({ provider: 'milan', namespace: 'shop-rome', name: 'data' }),
    },
  },
} as unknown as PersistentVolume;
const api = {
  get: async (type: unknown) => (type === persistentVolumes ? left : undefined),
  list: async () => [],
} as unknown as KubeApi;
const silent = async (): Promise<never> => {
  throw new Error('milan does not answer');
};
const deps = {
  cluster: { api },
  clock: new ManualClock(),
  providers: { of: () => ({ api: { get: silent, list: silent } }) },
} as unknown as MoveDeps;

test('the provider that has what was left is asked for it while an undo is ordered, and needed for nothing once that is settled', async () => {
  const look = (settledGeneration: number) =>
    createObserver(deps)(
      {
        metadata: { namespace: 'shop', name: 'data', uid: 'm', generation: 3 },
        spec: { target: 'local', order: 'undo-copy-back' },
        status: { phase: 'Undoable', from: { at: 'milan', volume: 'pvc-1' }, settledGeneration },
      } as unknown as VolumeMove,
      new AbortController().signal,
    );
  await expect(look(2)).rejects.toThrow('milan does not answer');
  expect(await look(3)).toMatchObject({ from: left, left: undefined });
});

test.each([
  { what: 'is silent', get: silent, real: 'silent' },
  { what: 'does not have it', get: async () => undefined, real: undefined },
])('a provider that $what is told apart before anything is discarded', async ({ get, real }) => {
  const providers = { of: () => ({ api: { get, list: silent } }) };
  const look = (status: object) =>
    createObserver({ ...deps, providers } as unknown as MoveDeps)(
      {
        metadata: { namespace: 'shop', name: 'data', uid: 'm', generation: 3 },
        spec: { target: 'local' },
        status: { from: { at: 'genoa', volume: 'pvc-2' }, to: { at: 'milan', volume: 'pvc-1' }, ...status },
      } as unknown as VolumeMove,
      new AbortController().signal,
    );
  for (const phase of ['Switching', 'Discarding']) expect((await look({ phase })).real).toBe(real);
  expect((await look({ phase: 'Undoable', undoUntil: '1970-01-01T00:00:00Z' })).real).toBe(real);
});
