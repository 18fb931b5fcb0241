/** Writes that cost nothing when nothing differs. */
import type { Applied, KubeApi } from '#kube/model/types.ts';
import { sameJson } from '#shared/domain/json-equality.ts';
import { type KubeObject, type ResourceType, refOf } from '#shared/domain/kube-object.ts';
import { fieldManager } from '#shared/domain/liqo-keys.ts';
import { codeOf } from '#shared/errors/app-error.ts';

/** Whether everything that `wanted` says is so in `actual`; what only `actual` has does not matter. Lists must be equal. */
export function covers(actual: unknown, wanted: unknown): boolean {
  if (Array.isArray(wanted)) {
    return (
      Array.isArray(actual) && actual.length === wanted.length && wanted.every((item, i) => covers(actual[i], item))
    );
  }
  if (typeof wanted !== 'object' || wanted === null) return actual === wanted;
  if (typeof actual !== 'object' || actual === null) return false;
  const fields = actual as Record<string, unknown>;
  return Object.entries(wanted).every(([key, value]) => value === undefined || covers(fields[key], value));
}

/** Replaces the status, conditional on the version that was read. True when it differed. */
export async function writeStatus<T extends KubeObject & { status?: unknown }>(
  api: KubeApi,
  type: ResourceType<T>,
  object: T,
  status: T['status'],
  signal: AbortSignal,
): Promise<boolean> {
  if (sameJson(object.status, status)) return false;
  await api.update(type, { ...object, status }, { subresource: 'status' }, signal);
  return true;
}

/** Those that are undefined go. */
export async function writeAnnotations<T extends KubeObject>(
  api: KubeApi,
  type: ResourceType<T>,
  object: T,
  wanted: Readonly<Record<string, string | undefined>>,
  signal: AbortSignal,
): Promise<void> {
  const changed = Object.entries(wanted).filter(([key, text]) => object.metadata.annotations?.[key] !== text);
  if (changed.length === 0) return;
  const annotations = Object.fromEntries(changed.map(([key, text]) => [key, text ?? null]));
  await api.mergePatch(type, refOf(object), { metadata: { annotations } }, {}, signal);
}

/** Applies unless `actual` covers it already. `exactly` selects what must be equal: entries there that `wanted` lacks are to go. */
export async function applyWanted<T extends KubeObject>(
  api: KubeApi,
  type: ResourceType<T>,
  actual: T | undefined,
  wanted: Applied<T>,
  exactly: (object: Applied<T>) => unknown,
  signal: AbortSignal,
): Promise<boolean> {
  const isDone =
    actual !== undefined &&
    covers(actual, wanted) &&
    sameJson(exactly(actual as unknown as Applied<T>), exactly(wanted));
  if (isDone) return false;
  await api.apply(type, wanted, { fieldManager: fieldManager.agent }, signal);
  return true;
}

/** One of that name that is there already stays as it is. */
export async function createUnlessThere<T extends KubeObject>(
  api: KubeApi,
  type: ResourceType<T>,
  object: T,
  signal: AbortSignal,
): Promise<void> {
  try {
    await api.create(type, object, { answer: 'metadata' }, signal);
  } catch (error) {
    if (codeOf(error) !== 'kube_already_exists') throw error;
  }
}

/** Deletes this incarnation; absent already is fine. */
export const deleteObject = <T extends KubeObject>(
  api: KubeApi,
  type: ResourceType<T>,
  object: T,
  signal: AbortSignal,
): Promise<boolean> =>
  api.delete(type, refOf(object), object.metadata.uid === undefined ? {} : { uid: object.metadata.uid }, signal);

/** Deletes this version only: fails with `kube_conflict` when the object has changed since. */
export function deleteAsRead<T extends KubeObject>(
  api: KubeApi,
  type: ResourceType<T>,
  object: T,
  signal: AbortSignal,
): Promise<boolean> {
  const { uid, resourceVersion } = object.metadata;
  const asRead = { ...(uid !== undefined && { uid }), ...(resourceVersion !== undefined && { resourceVersion }) };
  return api.delete(type, refOf(object), asRead, signal);
}

export async function addFinalizer<T extends KubeObject>(
  api: KubeApi,
  type: ResourceType<T>,
  object: T,
  name: string,
  signal: AbortSignal,
): Promise<T> {
  const { finalizers = [], resourceVersion } = object.metadata;
  if (finalizers.includes(name)) return object;
  return api.mergePatch(
    type,
    refOf(object),
    { metadata: { resourceVersion, finalizers: [...finalizers, name] } },
    {},
    signal,
  );
}

/** Gone meanwhile is fine. */
export async function dropFinalizer<T extends KubeObject>(
  api: KubeApi,
  type: ResourceType<T>,
  object: T,
  name: string,
  signal: AbortSignal,
): Promise<void> {
  const { finalizers = [], resourceVersion } = object.metadata;
  if (!finalizers.includes(name)) return;
  const left = finalizers.filter((one) => one !== name);
  try {
    await api.mergePatch(type, refOf(object), { metadata: { resourceVersion, finalizers: left } }, {}, signal);
  } catch (error) {
    if (codeOf(error) !== 'kube_not_found') throw error;
  }
}
