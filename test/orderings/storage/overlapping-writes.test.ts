/** Two agents of one consumer write to one real claim at a time, as for a moment after the lease of the first one has ended. */
import { expect, test } from 'vitest';
import { createBindingWrites } from '#agent/storage/binding/writes.ts';
import type { KubeApi } from '#kube/model/types.ts';
import { type PersistentVolumeClaim, persistentVolumeClaims } from '#shared/domain/core-kinds.ts';
import { storageAnnotation, storageData } from '#shared/domain/storage-keys.ts';
import { ManualClock } from '#shared/ports/clock.ts';
import { MemoryCluster } from '../memory-cluster.ts';

const ref = { namespace: 'shop-rome', name: 'data' };
const provider = 'milan';

/** A real claim that nothing stands for yet. `slowAgent`: what runs before it deletes, once it has written the order to. */
function oneClaim() {
  const milan = new MemoryCluster(new ManualClock(), () => 0);
  const { signal } = new AbortController();
  const { api, events } = milan.open('peer', signal);
  milan.create({ apiVersion: 'v1', kind: 'Namespace', metadata: { name: ref.namespace } });
  milan.create({
    apiVersion: 'v1',
    kind: 'PersistentVolumeClaim',
    metadata: { ...ref, annotations: { [storageAnnotation.unpublished]: 'mark' } },
  } as never);
  const read = (): PersistentVolumeClaim => {
    const object = milan.now(persistentVolumeClaims, ref);
    if (object === undefined) throw new Error('the claim is gone');
    return object;
  };
  const agentWith = (of: KubeApi) => createBindingWrites({ api: of, events }, () => of);
  const agent = agentWith(api);
  const slowAgent = (before: () => Promise<unknown>) =>
    agentWith({
      ...api,
      delete: async (...args: Parameters<KubeApi['delete']>) => {
        await before();
        return api.delete(...args);
      },
    } as KubeApi);
  return { milan, signal, read, agent, slowAgent };
}

test('a claim that is published after it was ordered to be deleted, and before it is, stays without that order', async () => {
  const { signal, read, agent, slowAgent } = oneClaim();
  let isPublished = false;
  const slow = slowAgent(async () => {
    expect(read().metadata.annotations?.[storageAnnotation.data]).toBe(storageData.delete);
    isPublished = await agent.unmark({ provider, object: read() }, signal);
  });
  await slow.discard({ provider, object: read() }, signal);
  expect(isPublished).toBe(true);
  expect(read().metadata.deletionTimestamp).toBeUndefined();
  expect(read().metadata.annotations).toEqual({});
});

test('an agent that has not seen the order to delete does not publish the claim', async () => {
  const { milan, signal, read, agent, slowAgent } = oneClaim();
  const object = read();
  let isPublished = true;
  const slow = slowAgent(async () => {
    isPublished = await agent.unmark({ provider, object }, signal);
  });
  await slow.discard({ provider, object: read() }, signal);
  expect(isPublished).toBe(false);
  expect(milan.now(persistentVolumeClaims, ref)).toBeUndefined();
});

test('a claim that is published before it is ordered to be deleted stays', async () => {
  const { signal, read, agent } = oneClaim();
  const object = read();
  expect(await agent.unmark({ provider, object: read() }, signal)).toBe(true);
  await agent.discard({ provider, object }, signal);
  expect(read().metadata.deletionTimestamp).toBeUndefined();
  expect(read().metadata.annotations).toEqual({});
});
