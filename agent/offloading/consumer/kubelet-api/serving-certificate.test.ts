import { expect, test } from 'vitest';
import { systemIds } from '#agent/runtime/ids.ts';
import type { Caches, KubeApi } from '#kube/model/types.ts';
import type { KubeObject, ObjectRef, ResourceType } from '#shared/domain/kube-object.ts';
import { silentLog } from '#shared/ports/log.ts';
import { systemClock } from '#shared/ports/system-clock.ts';
import { requestCertificate } from './serving-certificate.ts';

test('a request for a certificate that is given up on its way to the API server is not left behind', async () => {
  const stop = new AbortController();
  const kept = new Set<string>();
  const onItsWay = () => new Promise((resolve) => setTimeout(resolve, 20));
  const api = {
    create: async <T extends KubeObject>(_: ResourceType<T>, object: T, __?: object, signal?: AbortSignal) => {
      const carriedOut = onItsWay().then(() => kept.add(object.metadata.name));
      setTimeout(() => stop.abort(new Error('the node goes')), 1);
      const givenUp = new Promise<never>((_, reject) => {
        signal?.addEventListener('abort', () => reject(signal.reason as Error));
      });
      await Promise.race([carriedOut, givenUp]);
      return object;
    },
    update: async <T extends KubeObject>(_: ResourceType<T>, object: T, __?: object, signal?: AbortSignal) => {
      signal?.throwIfAborted();
      return object;
    },
    delete: async (_: ResourceType, { name }: ObjectRef) => kept.delete(name),
  } as unknown as KubeApi;
  const deps = { api, caches: {} as Caches, clock: systemClock, ids: systemIds, log: silentLog };
  const subject = { nodeName: 'milan', addresses: ['10.0.0.7'] };
  await expect(requestCertificate(subject, deps, stop.signal)).rejects.toThrow('the node goes');
  await onItsWay();
  expect([...kept]).toEqual([]);
});
