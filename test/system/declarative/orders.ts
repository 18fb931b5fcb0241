/** Manifests applied and deleted in an order of one's choice, as a tool does that tries again what could not be done yet. */
import { setTimeout as timer } from 'node:timers/promises';
import type { KubeApi } from '#kube/model/types.ts';
import { namespaces, roleBindings, secrets } from '#shared/domain/core-kinds.ts';
import { type KubeObject, type ResourceType, refOf } from '#shared/domain/kube-object.ts';
import { codeOf } from '#shared/errors/app-error.ts';
import { allKinds } from '#shared/schema/all-kinds.ts';

export function typeOf(object: KubeObject): ResourceType<KubeObject> {
  const all = [...allKinds, namespaces, roleBindings, secrets] as readonly ResourceType<KubeObject>[];
  const found = all.find(({ kind }) => kind === object.kind);
  if (found === undefined) throw new Error(`no type for ${object.kind}`);
  return found;
}

/** Fisher and Yates, from a small generator: the same order for the same seed. */
export function shuffled<T>(items: readonly T[], seed: number): T[] {
  const order = [...items];
  let state = seed;
  for (let i = order.length - 1; i > 0; i--) {
    state = (state * 1_103_515_245 + 12_345) % 2 ** 31;
    const j = state % (i + 1);
    const [a, b] = [order[i] as T, order[j] as T];
    order[i] = b;
    order[j] = a;
  }
  return order;
}

const pauseMs = 50;

/** What cannot be applied yet (its namespace is not there) goes to the end of the queue. */
export async function applyAll(api: KubeApi, objects: readonly KubeObject[]): Promise<void> {
  const queue = [...objects];
  for (let tries = 0; queue.length > 0; tries++) {
    const object = queue.shift() as KubeObject;
    try {
      await api.apply(typeOf(object), object as never, { fieldManager: 'gitops' });
    } catch (error) {
      if (tries > 2_000 || !['kube_not_found', 'kube_forbidden'].includes(String(codeOf(error)))) throw error;
      queue.push(object);
    }
    await timer(pauseMs);
  }
}

export async function deleteAll(api: KubeApi, objects: readonly KubeObject[]): Promise<void> {
  for (const object of objects) {
    await api.delete(typeOf(object), refOf(object));
    await timer(pauseMs);
  }
}
