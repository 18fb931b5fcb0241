/** Kinds that a cluster may lack: of one that is not served there is no object. */
import type { KubeObject, ObjectRef, ResourceType } from '#shared/domain/kube-object.ts';
import { AppError } from '#shared/errors/app-error.ts';
import type { KubeApi, ListOptions } from './types.ts';

/** Whether the API server does not know the kind that was asked for. */
export const isUnserved = (error: unknown): boolean =>
  error instanceof AppError && error.code === 'kube_not_found' && error.detail.name === undefined;

async function unlessUnserved<T, O>(answer: Promise<T>, other: O): Promise<T | O> {
  try {
    return await answer;
  } catch (error) {
    if (isUnserved(error)) return other;
    throw error;
  }
}

export const getIfServed = <T extends KubeObject>(
  api: Pick<KubeApi, 'get'>,
  type: ResourceType<T>,
  ref: ObjectRef,
  signal?: AbortSignal,
): Promise<T | undefined> => unlessUnserved(api.get(type, ref, signal), undefined);

/** Undefined: the kind is not served. */
export const listIfServed = <T extends KubeObject>(
  api: Pick<KubeApi, 'list'>,
  type: ResourceType<T>,
  options: ListOptions = {},
  signal?: AbortSignal,
): Promise<T[] | undefined> => unlessUnserved(api.list(type, options, signal), undefined);
