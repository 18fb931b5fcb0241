/** The few requests that commands make to a cluster: `kube/`, with what people need to know in its errors. */
import { setMaxListeners } from 'node:events';
import type { CliIo } from '#cli/output/io.ts';
import { createKubeApi } from '#kube/http/client.ts';
import { connectKubeconfig } from '#kube/http/kubeconfig.ts';
import { exchange } from '#kube/http/request.ts';
import type { Applied, CollectOptions, Subresource } from '#kube/model/types.ts';
import { type KubeObject, type ObjectRef, type ResourceType, refOf } from '#shared/domain/kube-object.ts';
import { AppError, codeOf } from '#shared/errors/app-error.ts';
import { silentLog } from '#shared/ports/log.ts';
import { type KubeTarget, type LoadedKubeconfig, loadKubeconfig } from './kubeconfig-files.ts';

/** A kind that is not served has no objects: nothing is found, nothing is there to delete. */
export interface KubeClient {
  /** URL of the API server in the kubeconfig. */
  readonly server: string;
  /** Undefined when absent. */
  get<T extends KubeObject>(type: ResourceType<T>, ref: ObjectRef): Promise<T | undefined>;
  /** Of all namespaces unless one is named. */
  list<T extends KubeObject>(type: ResourceType<T>, labelSelector?: string, namespace?: string): Promise<T[]>;
  /** As `list`, with what `keep` gives of each object in its place, or nothing: the objects themselves are not kept. */
  collect<T extends KubeObject, R>(
    type: ResourceType<T>,
    keep: (object: T) => R | undefined,
    within?: CollectOptions,
  ): Promise<R[]>;
  /** Server-side apply, taking fields over from other managers. */
  apply<T extends KubeObject>(type: ResourceType, object: T, fieldManager: string): Promise<T>;
  create<T extends KubeObject>(type: ResourceType<T>, object: T): Promise<T>;
  /** False when it was absent already. */
  /** `uid`: only this incarnation; a different one counts as absent. */
  delete(type: ResourceType, ref: ObjectRef, uid?: string): Promise<boolean>;
  mergePatch(
    type: ResourceType,
    ref: ObjectRef,
    patch: unknown,
    subresource?: Extract<Subresource, 'status' | 'approval'>,
  ): Promise<void>;
  /** Kubernetes version, for example v1.34.4; proves that the API server answers. */
  version(): Promise<string>;
  /** GET of a path that is no object, as text. */
  path(path: string): Promise<string>;
  /** The API server's clock by the `Date` of an answer, milliseconds since the epoch, whole seconds. Undefined: it sends none. */
  serverTime(): Promise<number | undefined>;
  /** What the API server answers to a review of `group`, version v1, in its status. Stores nothing. */
  review<S>(group: string, kind: string, spec: object): Promise<S>;
  /** What applying the object would be refused for, in the words of the API server; undefined: nothing. Stores nothing. */
  refusalOf(type: ResourceType, object: KubeObject): Promise<string | undefined>;
}

/** For `collect`, of kinds whose objects are a few kB each; a Node has 20 kB and more. */
export const smallObjects = { pageSize: 250 } as const satisfies CollectOptions;

/** For the answer to a read, and for silence within one. Commands that wait longer ask again themselves. */
const timeoutMs = 15_000;
/**
 * For the answer to a write. The API server calls admission webhooks first, up to 30 s for each, and ends the request itself after 60 s: until then the
 * object may still be written.
 */
const writeTimeoutMs = 65_000;

/** Its connections close when `signal` aborts; idle ones keep no process alive. */
export const openCluster = async (target: KubeTarget, io: Pick<CliIo, 'clock' | 'signal'>): Promise<KubeClient> =>
  openLoaded(await loadKubeconfig(target), target.kubeconfig, io);

/** `from`: what errors call the kubeconfig. */
export async function openLoaded(
  { text, context, server }: Pick<LoadedKubeconfig, 'text' | 'context' | 'server'>,
  from: string,
  { clock, signal }: Pick<CliIo, 'clock' | 'signal'>,
): Promise<KubeClient> {
  const explained = (error: unknown, what: string): unknown => {
    if (!(error instanceof AppError)) return error;
    // Without an answer: a program or a file that should have given the credentials.
    if (error.code === 'kube_unauthorized' && error.detail.status === undefined) {
      const reason = error.cause instanceof Error ? error.cause.message : error.message;
      return new AppError('invalid_input', `the credentials of context ${context} do not work: ${reason}`, {
        cause: error,
        detail: { field: 'kubeconfig', value: from, remedy: 'try them with `kubectl get nodes`' },
      });
    }
    if (error.detail.status === undefined) return error;
    return new AppError(error.code, `the API server at ${server} refused to ${what}: ${error.message}`, {
      cause: error,
      detail: error.detail,
    });
  };
  async function ask<R>(what: string, answer: () => Promise<R>): Promise<R> {
    try {
      return await answer();
    } catch (error) {
      throw explained(error, what);
    }
  }
  const served = async <R>(what: string, answer: () => Promise<R>): Promise<R | undefined> => {
    try {
      return await ask(what, answer);
    } catch (error) {
      if (codeOf(error) === 'kube_not_found') return undefined;
      throw error;
    }
  };

  const connection = await ask('connect', () => connectKubeconfig(text, { context, clock }));
  // Every request under way listens to it, and CRDs are applied all at once.
  setMaxListeners(0, signal);
  signal.addEventListener('abort', () => connection.close(), { once: true });
  const api = createKubeApi(connection, { clock, log: silentLog }, { timeoutMs, retries: 0 });
  const writes = createKubeApi(connection, { clock, log: silentLog }, { timeoutMs: writeTimeoutMs, retries: 0 });
  return {
    server,
    get: (type, ref) =>
      served(
        `get ${nameOf(type, ref)}`,
        repeatable(() => api.get(type, ref, signal)),
      ),
    async list<T extends KubeObject>(type: ResourceType<T>, labelSelector?: string, namespace?: string): Promise<T[]> {
      const options = {
        ...(labelSelector !== undefined && { labelSelector }),
        ...(namespace !== undefined && { namespace }),
      };
      return (
        (await served(
          `list ${type.plural}`,
          repeatable(() => api.list(type, options, signal)),
        )) ?? []
      );
    },
    collect: async (type, keep, within = {}) =>
      (await served(
        `list ${type.plural}`,
        repeatable(() => api.collect(type, keep, within, signal)),
      )) ?? [],
    apply: <T extends KubeObject>(type: ResourceType, object: T, fieldManager: string) =>
      ask(
        `apply ${nameOf(type, refOf(object))}`,
        repeatable(() => writes.apply(type as ResourceType<T>, object as Applied<T>, { fieldManager }, signal)),
      ),
    create: (type, object) =>
      ask(`create ${nameOf(type, refOf(object))}`, () => writes.create(type, object, {}, signal)),
    delete: async (type, ref, uid) =>
      (await served(`delete ${nameOf(type, ref)}`, () =>
        writes.delete(type, ref, { propagationPolicy: 'Background', ...(uid !== undefined && { uid }) }, signal),
      )) === true,
    async mergePatch(type, ref, patch, subresource) {
      await ask(`patch ${nameOf(type, ref)}`, () =>
        writes.mergePatch(type, ref, patch, subresource === undefined ? {} : { subresource }, signal),
      );
    },
    version: () =>
      ask('tell its version', async () => {
        const answer = await api.getPath('/version', signal);
        try {
          return (JSON.parse(answer) as { gitVersion: string }).gitVersion;
        } catch (cause) {
          throw new AppError('kube_failed', `${server} is no API server: it answers /version with no JSON`, { cause });
        }
      }),
    path: (path) =>
      ask(
        `get ${path}`,
        repeatable(() => api.getPath(path, signal)),
      ),
    serverTime: () =>
      ask('tell its time', async () => {
        const headers = { accept: 'application/json' };
        const call = { method: 'GET', path: '/version', headers, deadlineMs: timeoutMs, idleMs: timeoutMs };
        const { headers: answered } = await repeatable(() => exchange(connection, call, clock, signal))();
        const time = Date.parse(answered.date ?? '');
        return Number.isNaN(time) ? undefined : time;
      }),
    review: (group, kind, spec) =>
      ask(
        `answer a ${kind}`,
        repeatable(async () => {
          const body = { apiVersion: `${group}/v1`, kind, spec };
          const path = `/apis/${group}/v1/${kind.toLowerCase()}s`;
          return (await api.postPath<{ status: never }>(path, body, signal)).status;
        }),
      ),
    async refusalOf(type, object) {
      try {
        await writes.apply(
          type,
          object as Applied<KubeObject>,
          { fieldManager: 'isthmus-check', dryRun: true },
          signal,
        );
        return undefined;
      } catch (error) {
        if (!(error instanceof AppError) || error.detail.status === undefined) throw error;
        return error.message;
      }
    },
  };
}

/** Asked once more when a kept connection had been closed meanwhile: for what may be done twice. */
const repeatable =
  <R>(answer: () => Promise<R>): (() => Promise<R>) =>
  async () => {
    try {
      return await answer();
    } catch (error) {
      if (error instanceof AppError && error.detail.stale === true) return answer();
      throw error;
    }
  };

const nameOf = ({ kind }: ResourceType, { namespace, name }: ObjectRef): string =>
  `${kind} ${namespace === undefined ? name : `${namespace}/${name}`}`.trim();
