/** One page of a list. */
import type { KubeObject, ResourceType } from '#shared/domain/kube-object.ts';
import { AppError } from '#shared/errors/app-error.ts';
import type { ListOptions } from '../model/types.ts';
import { isTooLarge } from './answer-bounds.ts';
import { withoutManagedFields } from './managed-fields.ts';
import { collectionPath, withQuery } from './paths.ts';
import type { Send } from './retrying-client.ts';

/** Items are as the server sends them: without `apiVersion` and `kind`. */
export interface Page<T> {
  readonly items: T[];
  readonly resourceVersion: string;
  readonly next: string | undefined;
  /** Of its text. */
  readonly bytes: number;
}

/** A page that is more than a peer may answer is asked for again with fewer objects, down to one. */
export async function fetchPage<T extends KubeObject>(
  send: Send,
  type: ResourceType<T>,
  options: ListOptions,
  { limit, next }: { readonly limit: number; readonly next: string | undefined },
  signal?: AbortSignal,
): Promise<Page<T>> {
  for (let fewer = limit; ; fewer = Math.ceil(fewer / 8)) {
    try {
      return await fetchOnce(send, type, options, { limit: fewer, next }, signal);
    } catch (error) {
      if (!isTooLarge(error) || fewer === 1) throw error;
    }
  }
}

async function fetchOnce<T extends KubeObject>(
  send: Send,
  type: ResourceType<T>,
  options: ListOptions,
  { limit, next }: { readonly limit: number; readonly next: string | undefined },
  signal?: AbortSignal,
): Promise<Page<T>> {
  const path = withQuery(collectionPath(type, options.namespace), {
    limit,
    continue: next,
    labelSelector: options.labelSelector,
    fieldSelector: options.fieldSelector,
  });
  // Over a slow line a page may take long, as long as it keeps coming.
  const text = await send({ method: 'GET', path, repeatable: true, deadlineMs: 120_000 }, signal);
  try {
    const list = JSON.parse(withoutManagedFields(text)) as {
      items?: T[];
      metadata?: { resourceVersion?: string; continue?: string };
    };
    return {
      items: list.items ?? [],
      resourceVersion: list.metadata?.resourceVersion ?? '',
      next: list.metadata?.continue || undefined,
      bytes: text.length,
    };
  } catch (cause) {
    throw new AppError('kube_failed', 'the API server answered a list that is not JSON', { cause });
  }
}
