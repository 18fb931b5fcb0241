/** Kinds that a cluster may lack. */
import { expect, test } from 'vitest';
import type { Controller, KubeApi } from '#kube/model/types.ts';
import { secrets } from '#shared/domain/core-kinds.ts';
import { AppError } from '#shared/errors/app-error.ts';
import { ManualClock } from '#shared/ports/clock.ts';
import { silentLog } from '#shared/ports/log.ts';
import { getIfServed, listIfServed } from '../model/optional-kind.ts';
import { whenServed } from './when-served.ts';

const unserved = () => new AppError('kube_not_found', 'the API server does not know the kind', { detail: {} });
const failing = (error: Error): KubeApi => {
  const fail = () => Promise.reject(error);
  return { get: fail, list: fail } as unknown as KubeApi;
};
const ref = { namespace: 'a', name: 'b' };

test('of a kind that is not served there is no object; every other failure is one', async () => {
  expect(await getIfServed(failing(unserved()), secrets, ref)).toBeUndefined();
  expect(await listIfServed(failing(unserved()), secrets)).toBeUndefined();
  for (const code of ['kube_forbidden', 'kube_unreachable'] as const) {
    const api = failing(new AppError(code, 'no'));
    await expect(getIfServed(api, secrets, ref)).rejects.toMatchObject({ code });
    await expect(listIfServed(api, secrets)).rejects.toMatchObject({ code });
  }
  const named = failing(new AppError('kube_not_found', 'no', { detail: { name: 'b' } }));
  await expect(listIfServed(named, secrets)).rejects.toMatchObject({ code: 'kube_not_found' });
});

test('a controller begins when all its kinds are served, after any other answer and any silence', async () => {
  const clock = new ManualClock();
  const answers = [unserved(), new AppError('kube_unreachable', 'no'), undefined];
  let asked = 0;
  const api = {
    list: async () => {
      const error = answers[asked++];
      if (error) throw error;
      return [];
    },
  } as unknown as KubeApi;
  const keys: string[] = [];
  let isRunning = false;
  const inner: Controller = {
    name: 'inner',
    enqueue: (key) => keys.push(key),
    measure: () => undefined,
    run: async () => {
      isRunning = true;
    },
  };
  const deps = { clock, log: silentLog };
  const controller = whenServed({ name: 'snapshots', api, types: [secrets], create: () => inner }, deps);
  const running = controller.run(new AbortController().signal);
  controller.enqueue('early');
  for (let at = 1; at < answers.length; at += 1) {
    await expect.poll(() => asked).toBe(at);
    expect(isRunning).toBe(false);
    await expect.poll(() => clock.sleeping).toBe(1);
    clock.advance(60_000);
  }
  await running;
  expect(isRunning).toBe(true);
  controller.enqueue('late');
  expect(keys).toEqual(['late']);
});

test('it ends while it waits', async () => {
  const stop = new AbortController();
  const api = failing(unserved());
  const create = (): Controller => {
    throw new Error('not served');
  };
  const deps = { clock: new ManualClock(), log: silentLog };
  const running = whenServed({ name: 'snapshots', api, types: [secrets], create }, deps).run(stop.signal);
  stop.abort();
  await running;
});
