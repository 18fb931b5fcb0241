/** When a VolumeMove takes which order, by the API server alone and by `isthmus move volume`; no agent runs. */
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { isthmus } from '#cli/captured-io.ts';
import { connectKubeconfig } from '#kube/http/kubeconfig.ts';
import type { KubeApi } from '#kube/model/types.ts';
import { openCluster } from '#kube/open-cluster.ts';
import { namespaces } from '#shared/domain/core-kinds.ts';
import { silentLog } from '#shared/ports/log.ts';
import { systemClock } from '#shared/ports/system-clock.ts';
import {
  type MovePhase,
  movePhases,
  type VolumeMove,
  type VolumeMoveStatus,
  volumeMoves,
} from '#shared/schema/isthmus/volume-move.ts';
import { leaseApiServer } from '#test/harness/api-server-pool/lease.ts';
import type { ApiServer } from '#test/harness/kube-apiserver.ts';

const stop = new AbortController();
let server: ApiServer;
let api: KubeApi;

beforeAll(async () => {
  server = await leaseApiServer();
  const deps = { clock: systemClock, log: silentLog };
  ({ api } = openCluster(await connectKubeconfig(server.kubeconfig), deps, stop.signal));
  await api.create(namespaces, { apiVersion: 'v1', kind: 'Namespace', metadata: { name: 'shop' } });
}, 900_000);
afterAll(async () => {
  stop.abort();
  await server?.stop();
});

const moveOf = (name: string, spec: object = {}): VolumeMove =>
  ({
    apiVersion: 'isthmus.dev/v1alpha1',
    kind: 'VolumeMove',
    metadata: { namespace: 'shop', name },
    spec: { target: 'milan', ...spec },
  }) as VolumeMove;
const at = (name: string) => ({ namespace: 'shop', name });
const order = (name: string, what: string | null) => api.mergePatch(volumeMoves, at(name), { spec: { order: what } });
const enter = (name: string, phase: MovePhase) => {
  const status: VolumeMoveStatus = { phase, since: '2026-01-31T12:00:00Z', way: 'forth' };
  return api.mergePatch(volumeMoves, at(name), { status }, { subresource: 'status' });
};
const isRefused = /spec\.order.*confirm is accepted while status\.phase is Undoable.*move_not_undoable/s;

describe('the API server', () => {
  test('takes no move that is made with a confirmation', async () => {
    await expect(api.create(volumeMoves, moveOf('born', { order: 'confirm' }))).rejects.toThrow(isRefused);
    expect(await api.get(volumeMoves, at('born'))).toBeUndefined();
  });

  test('takes no confirmation of a move that the agent has not looked at, and changes nothing', async () => {
    await api.create(volumeMoves, moveOf('new'));
    await expect(order('new', 'confirm')).rejects.toThrow(isRefused);
    expect((await api.get(volumeMoves, at('new')))?.metadata.generation).toBe(1);
  });

  test.each(movePhases)('takes a confirmation of a move that is %s only if that is Undoable', async (phase) => {
    const name = `in-${phase.toLowerCase()}`;
    await api.create(volumeMoves, moveOf(name));
    await enter(name, phase);
    if (phase === 'Undoable') await order(name, 'confirm');
    else await expect(order(name, 'confirm')).rejects.toThrow(isRefused);
    expect((await api.get(volumeMoves, at(name)))?.spec.order).toBe(phase === 'Undoable' ? 'confirm' : undefined);
    // The other orders are the agent's to judge.
    if (phase !== 'Undoable') await order(name, 'abort');
  });

  test('lets the agent write every phase, and people everything else, once the confirmation was taken', async () => {
    await api.create(volumeMoves, moveOf('taken'));
    await enter('taken', 'Undoable');
    await order('taken', 'confirm');
    for (const phase of movePhases) {
      await enter('taken', phase);
      await api.mergePatch(volumeMoves, at('taken'), { spec: { bytesPerSecond: 2_048 + movePhases.indexOf(phase) } });
    }
    await order('taken', null);
    await expect(order('taken', 'confirm')).rejects.toThrow(isRefused);
  });
});

describe('the command', () => {
  const run = (name: string, ...words: string[]) =>
    isthmus(['move', 'volume', name, '-n', 'shop', ...words, '--kubeconfig', server.kubeconfigPath], {});

  test.each(movePhases.filter((phase) => phase !== 'Undoable'))(
    'refuses confirm and undo of a move that is %s, by name and with what is accepted',
    async (phase) => {
      const name = `told-${phase.toLowerCase()}`;
      await api.create(volumeMoves, moveOf(name));
      await enter(name, phase);
      const before = await api.get(volumeMoves, at(name));
      for (const [words, what] of [
        [['confirm'], 'confirm'],
        [['undo', '--copy-back'], 'undo-copy-back'],
        [['undo', '--discard-new-writes'], 'undo-discard-new-writes'],
      ] as const) {
        const { code, err } = await run(name, ...words);
        expect(code).toBe(5);
        expect(err).toContain(`claim shop/${name} is ${phase}: ${what} is accepted while it is Undoable`);
        expect(err).toContain('move_not_undoable');
      }
      expect(await api.get(volumeMoves, at(name))).toEqual(before);
    },
  );
});
