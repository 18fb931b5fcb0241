/** Claims that change or vanish while they are guarded. */
import { expect, test } from 'vitest';
import type { KubeApi } from '#kube/model/types.ts';
import type { ObjectRef, ResourceType } from '#shared/domain/kube-object.ts';
import { AppError } from '#shared/errors/app-error.ts';
import { guardClaims } from './guard.ts';

/** Names of the claims that got their guard; `trouble` is what the API server answers for the first one. */
async function guarded(trouble: 'kube_conflict' | 'kube_not_found'): Promise<readonly string[]> {
  const done: string[] = [];
  const api = {
    list: async () => ['a', 'b'].map((name) => ({ metadata: { namespace: 'shop-rome', name, uid: name } })),
    async mergePatch(_: ResourceType, { name }: ObjectRef) {
      if (name === 'a') throw new AppError(trouble, `claim ${name}`);
      done.push(name);
    },
  } as unknown as KubeApi;
  await guardClaims(api, 'shop-rome', 'rome', new AbortController().signal);
  return done;
}

test('a claim that is gone meanwhile keeps the namespace no longer, one that has changed does', async () => {
  expect(await guarded('kube_not_found')).toEqual(['b']);
  await expect(guarded('kube_conflict')).rejects.toThrow('claim a');
});
