/** `KubeApi` over one connection: typed requests, paged lists, the server's refusals as error codes. */
import { type KubeObject, type ObjectRef, type ResourceType, refOf } from '#shared/domain/kube-object.ts';
import { AppError, codeOf } from '#shared/errors/app-error.ts';
import type { CollectOptions, DeleteOptions, KubeApi, ListOptions, WriteOptions } from '../model/types.ts';
import type { ClusterConnection } from './connection.ts';
import { fetchPage, type Page } from './list-page.ts';
import { withoutManagedFields } from './managed-fields.ts';
import { collectionPath, kindText, objectPath, requireNamespace, withKind, withQuery } from './paths.ts';
import { type Call, createRetryingClient, type RetryingClientOptions, type SenderDeps } from './retrying-client.ts';

export interface KubeApiOptions extends RetryingClientOptions {
  /** Objects per page of a list. */
  readonly pageSize?: number;
}

const metadataOnly = { accept: 'application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1,application/json' };
/** For large objects: a Node of 20 kB takes five times that while its page is parsed. */
const collectedPage = 50;
/** An apply that names a version is refused where the object has another one, and makes the object where there is none; objects' versions begin above this one. */
const neverAVersion = '1';
const answered = ({ answer }: WriteOptions): Pick<Call, 'accept'> => (answer === 'metadata' ? metadataOnly : {});

interface Managed {
  readonly metadata?: {
    readonly managedFields?: readonly { readonly manager?: string; readonly operation?: string }[];
  };
}

export function createKubeApi(
  connection: ClusterConnection,
  deps: SenderDeps,
  { pageSize = 500, ...sending }: KubeApiOptions = {},
): KubeApi {
  const send = createRetryingClient(connection, deps, sending);

  const parse = <T>(text: string): T => {
    connection.bounds?.checkObject(text.length);
    try {
      return JSON.parse(withoutManagedFields(text)) as T;
    } catch (cause) {
      throw new AppError('kube_failed', 'the API server answered something that is not JSON', { cause });
    }
  };

  const write = async <T>(call: Call, signal?: AbortSignal): Promise<T> => parse<T>(await send(call, signal));

  /** 404 of an object is an answer; 404 of its kind is a mistake or a CRD that is not installed. */
  const isAbsent = (error: unknown): boolean =>
    error instanceof AppError && error.code === 'kube_not_found' && error.detail.name !== undefined;

  const explained = (error: unknown, type: ResourceType): unknown =>
    error instanceof AppError && error.code === 'kube_not_found' && error.detail.name === undefined
      ? new AppError(
          'kube_not_found',
          `the API server does not know the kind ${kindText(type)}; is its CRD installed?`,
          {
            detail: error.detail,
            cause: error,
          },
        )
      : error;

  async function get<T extends KubeObject>(
    type: ResourceType<T>,
    ref: ObjectRef,
    signal?: AbortSignal,
  ): Promise<T | undefined> {
    try {
      return parse<T>(await send({ method: 'GET', path: objectPath(type, ref), repeatable: true }, signal));
    } catch (error) {
      if (isAbsent(error)) return undefined;
      throw explained(error, type);
    }
  }

  async function collect<T extends KubeObject, R>(
    type: ResourceType<T>,
    keep: (object: T) => R | undefined,
    { pageSize: collected = collectedPage, ...options }: CollectOptions = {},
    signal?: AbortSignal,
  ): Promise<R[]> {
    return inPages(type, options, Math.min(pageSize, collected), signal, async (pages) => {
      const kept: R[] = [];
      for await (const { items } of pages)
        for (const item of items) {
          const one = keep(withKind(type, item));
          if (one !== undefined) kept.push(one);
        }
      return kept;
    });
  }

  async function list<T extends KubeObject>(
    type: ResourceType<T>,
    options: ListOptions = {},
    signal?: AbortSignal,
  ): Promise<T[]> {
    return inPages(type, options, pageSize, signal, async (pages) => {
      const all: T[] = [];
      let bytes = 0;
      for await (const page of pages) {
        bytes += page.bytes;
        connection.bounds?.checkKept(bytes);
        for (const item of page.items) all.push(withKind(type, item));
      }
      return all;
    });
  }

  /** `take` may be called again, with the pages of another snapshot. */
  async function inPages<T extends KubeObject, R>(
    type: ResourceType<T>,
    options: ListOptions,
    limit: number,
    signal: AbortSignal | undefined,
    take: (pages: AsyncIterable<Page<T>>) => Promise<R>,
  ): Promise<R> {
    for (let restarts = 0; ; restarts++) {
      try {
        return await take(pagesOf(type, options, limit, signal));
      } catch (error) {
        // The snapshot that the pages came from was compacted away: only a new one is consistent.
        if (codeOf(error) !== 'kube_gone' || restarts >= 4) throw explained(error, type);
      }
    }
  }

  async function* pagesOf<T extends KubeObject>(
    type: ResourceType<T>,
    options: ListOptions,
    limit: number,
    signal: AbortSignal | undefined,
  ): AsyncGenerator<Page<T>, void> {
    let next: string | undefined;
    do {
      const got: Page<T> = await fetchPage(send, type, options, { limit, next }, signal);
      next = got.next;
      yield got;
    } while (next !== undefined);
  }

  async function remove<T extends KubeObject>(
    type: ResourceType<T>,
    ref: ObjectRef,
    options: DeleteOptions = {},
    signal?: AbortSignal,
  ): Promise<boolean> {
    const { uid, resourceVersion, gracePeriodSeconds, propagationPolicy } = options;
    const preconditions = uid === undefined && resourceVersion === undefined ? undefined : { uid, resourceVersion };
    const body = { apiVersion: 'v1', kind: 'DeleteOptions', preconditions, gracePeriodSeconds, propagationPolicy };
    try {
      await send({ method: 'DELETE', path: objectPath(type, ref), body }, signal);
      return true;
    } catch (error) {
      if (isAbsent(error)) return false;
      if (codeOf(error) === 'kube_conflict' && uid !== undefined) {
        const found = await get(type, ref, signal);
        if (found === undefined || found.metadata.uid !== uid) return false;
      }
      throw explained(error, type);
    }
  }

  const patch = <T extends KubeObject>(
    type: ResourceType<T>,
    ref: ObjectRef,
    body: unknown,
    contentType: string,
    options: WriteOptions,
    signal: AbortSignal | undefined,
  ): Promise<T> => {
    const path = objectPath(type, ref, options.subresource);
    return write<T>({ method: 'PATCH', path, body, contentType, ...answered(options) }, signal);
  };

  return {
    get,
    list,
    collect,
    delete: remove,
    create(type, object, options = {}, signal) {
      requireNamespace(type, object.metadata.namespace);
      const path =
        options.subresource === undefined
          ? collectionPath(type, object.metadata.namespace)
          : objectPath(type, refOf(object), options.subresource);
      return write({ method: 'POST', path, body: withKind(type, object), ...answered(options) }, signal);
    },
    update(type, object, options = {}, signal) {
      const path = objectPath(type, refOf(object), options.subresource);
      return write({ method: 'PUT', path, body: withKind(type, object), ...answered(options) }, signal);
    },
    apply(type, applied, { fieldManager, createOnly = false, dryRun = false, ...options }, signal) {
      const { metadata } = applied;
      const object = createOnly ? { ...applied, metadata: { ...metadata, resourceVersion: neverAVersion } } : applied;
      const query = { fieldManager, force: true, ...(dryRun ? { dryRun: 'All' } : {}) };
      const path = withQuery(objectPath(type, metadata, options.subresource), query);
      // JSON is YAML; applying the same fields twice is the same as once, so a lost answer may be asked for again.
      const contentType = 'application/apply-patch+yaml';
      const call = { method: 'PATCH', path, body: withKind(type, object), contentType, repeatable: true };
      return write({ ...call, ...answered(options) }, signal);
    },
    mergePatch: (type, ref, body, options = {}, signal) =>
      patch(type, ref, body, 'application/merge-patch+json', options, signal),
    jsonPatch: (type, ref, body, options = {}, signal) =>
      patch(type, ref, body, 'application/json-patch+json', options, signal),
    post: (type, ref, subresource, body, signal) =>
      write({ method: 'POST', path: objectPath(type, ref, subresource), body }, signal),
    async appliers(type, ref, signal) {
      const path = objectPath(type, ref);
      try {
        const { metadata } = JSON.parse(await send({ method: 'GET', path, repeatable: true }, signal)) as Managed;
        const applied = (metadata?.managedFields ?? []).filter(({ operation }) => operation === 'Apply');
        return applied.map(({ manager = '' }) => manager);
      } catch (error) {
        if (isAbsent(error)) return [];
        throw explained(error, type);
      }
    },
    getPath: (path, signal) => send({ method: 'GET', path, repeatable: true }, signal),
    postPath: (path, body, signal) => write({ method: 'POST', path, body }, signal),
  };
}
