/**
 * The few requests that commands make to a cluster. Plain JSON over the credentials of a kubeconfig: client-node's own object API drops
 * `x-kubernetes-*` members of CRDs, so it only reads the kubeconfig here.
 */

import { setMaxListeners } from 'node:events';
import { request as httpRequest, type IncomingMessage } from 'node:http';
import { request as httpsRequest, type RequestOptions } from 'node:https';
import type { KubeConfig } from '@kubernetes/client-node';
import { abortsWith } from '#shared/async/abort-scope.ts';
import { apiVersionOf, type KubeObject, type ObjectRef, type ResourceType } from '#shared/domain/kube-object.ts';
import { AppError } from '#shared/errors/app-error.ts';
import type { ErrorCode } from '#shared/errors/codes.ts';
import { messageOf } from '#shared/errors/message-of.ts';
import { readKubeconfig } from './kubeconfig-files.ts';

export interface KubeTarget {
  /** One file, or several separated as in KUBECONFIG. */
  readonly kubeconfig: string;
  readonly context?: string | undefined;
}

export interface KubeClient {
  /** URL of the API server in the kubeconfig. */
  readonly server: string;
  /** Undefined when absent. */
  get<T extends KubeObject>(type: ResourceType<T>, ref: ObjectRef): Promise<T | undefined>;
  /** Of all namespaces unless one is named. Empty for a kind that is not served. */
  list<T extends KubeObject>(type: ResourceType<T>, labelSelector?: string, namespace?: string): Promise<T[]>;
  /** Server-side apply, taking fields over from other managers. */
  apply<T extends KubeObject>(type: ResourceType, object: T, fieldManager: string): Promise<T>;
  create<T extends KubeObject>(type: ResourceType<T>, object: T): Promise<T>;
  /** False when it was absent already. */
  delete(type: ResourceType, ref: ObjectRef): Promise<boolean>;
  mergePatch(type: ResourceType, ref: ObjectRef, patch: unknown, subresource?: 'status' | 'approval'): Promise<void>;
  /** Kubernetes version, for example v1.34.4; proves that the API server answers. */
  version(): Promise<string>;
}

const timeoutMs = 15_000;

export async function loadKubeconfig({ kubeconfig, context }: KubeTarget): Promise<KubeConfig> {
  const config = await readKubeconfig(kubeconfig);
  if (context !== undefined) {
    const known = config.getContexts().map(({ name }) => name);
    if (!known.includes(context)) {
      throw new AppError(
        'invalid_input',
        `the kubeconfig ${kubeconfig} has no context ${JSON.stringify(context)}, it has ${known.join(', ') || 'none'}`,
        { detail: { field: 'context', value: context, accepted: known } },
      );
    }
    config.setCurrentContext(context);
  }
  if (config.getCurrentCluster()?.server === undefined) {
    throw new AppError('invalid_input', `the kubeconfig ${kubeconfig} names no cluster in its current context`, {
      detail: { field: 'kubeconfig', value: kubeconfig, remedy: 'choose a context with --context NAME' },
    });
  }
  return config;
}

export async function openCluster(target: KubeTarget, signal: AbortSignal): Promise<KubeClient> {
  const config = await loadKubeconfig(target);
  // Every request under way listens to it, and CRDs are applied all at once.
  setMaxListeners(0, signal);
  const server = (config.getCurrentCluster()?.server ?? '').replace(/\/+$/, '');

  async function call<R>(method: string, path: string, body?: unknown, contentType = 'application/json'): Promise<R> {
    const url = new URL(server + path);
    const text = body === undefined ? undefined : JSON.stringify(body);
    const options: RequestOptions = { method, signal: abortsWith(signal, AbortSignal.timeout(timeoutMs)) };
    try {
      await config.applyToHTTPSOptions(options);
    } catch (cause) {
      const said = messageOf(cause);
      throw new AppError(
        'invalid_input',
        `the credentials of context ${config.getCurrentContext()} do not work: ${said}`,
        {
          cause,
          detail: { field: 'kubeconfig', value: target.kubeconfig, remedy: 'try them with `kubectl get nodes`' },
        },
      );
    }
    options.headers = {
      ...options.headers,
      accept: 'application/json',
      'user-agent': 'isthmus',
      ...(text !== undefined && { 'content-type': contentType, 'content-length': Buffer.byteLength(text) }),
    };
    const { status, answer } = await exchange(url, options, text);
    if (status >= 400) throw kubeError(status, answer, `${method} ${path}`, server);
    return answer as R;
  }
  const found = async <R>(answer: Promise<R>): Promise<R | undefined> =>
    answer.catch((error: unknown) => {
      if (error instanceof AppError && error.code === 'kube_not_found') return undefined;
      throw error;
    });

  return {
    server,
    get: (type, ref) => found(call('GET', pathOf(type, ref))),
    async list<T extends KubeObject>(type: ResourceType<T>, labelSelector?: string, namespace?: string) {
      const query = labelSelector === undefined ? '' : `?labelSelector=${encodeURIComponent(labelSelector)}`;
      const answer = await found(
        call<{ items: T[] }>('GET', pathOf(type, namespace === undefined ? {} : { namespace }) + query),
      );
      return (answer?.items ?? []).map((item) => ({ ...item, apiVersion: apiVersionOf(type), kind: type.kind }));
    },
    apply: (type, object, fieldManager) =>
      call(
        'PATCH',
        `${pathOf(type, object.metadata)}?fieldManager=${fieldManager}&force=true`,
        object,
        'application/apply-patch+yaml',
      ),
    create: (type, object) =>
      call('POST', pathOf(type, object.metadata.namespace ? { namespace: object.metadata.namespace } : {}), object),
    delete: async (type, ref) =>
      (await found(call('DELETE', `${pathOf(type, ref)}?propagationPolicy=Background`))) !== undefined,
    mergePatch: (type, ref, patch, subresource) =>
      call(
        'PATCH',
        pathOf(type, ref) + (subresource === undefined ? '' : `/${subresource}`),
        patch,
        'application/merge-patch+json',
      ),
    version: async () => (await call<{ gitVersion: string }>('GET', '/version')).gitVersion,
  };
}

function pathOf(type: ResourceType, ref: Partial<ObjectRef>): string {
  const root = type.group === '' ? `/api/${type.version}` : `/apis/${type.group}/${type.version}`;
  const within = type.namespaced && ref.namespace ? `/namespaces/${encodeURIComponent(ref.namespace)}` : '';
  return `${root}${within}/${type.plural}${ref.name ? `/${encodeURIComponent(ref.name)}` : ''}`;
}

function exchange(
  url: URL,
  options: RequestOptions,
  body: string | undefined,
): Promise<{ status: number; answer: unknown }> {
  return new Promise((resolve, reject) => {
    const fail = (cause: Error) =>
      reject(
        new AppError(
          'kube_unreachable',
          `the API server at ${url.origin} did not answer: ${cause.name === 'TimeoutError' || cause.name === 'AbortError' ? 'no answer in time' : cause.message}`,
          { cause },
        ),
      );
    const receive = (response: IncomingMessage) => {
      const chunks: Buffer[] = [];
      response.on('data', (chunk: Buffer) => chunks.push(chunk));
      response.on('error', fail);
      response.on('end', () => {
        const text = Buffer.concat(chunks).toString('utf8');
        let answer: unknown = text;
        try {
          answer = JSON.parse(text);
        } catch {
          // An error page of a proxy: its text is all there is.
        }
        resolve({ status: response.statusCode ?? 0, answer });
      });
    };
    const sent = url.protocol === 'http:' ? httpRequest(url, options, receive) : httpsRequest(url, options, receive);
    sent.on('error', fail);
    sent.end(body);
  });
}

const codeByStatus: Readonly<Record<number, ErrorCode>> = {
  400: 'kube_invalid',
  401: 'kube_unauthorized',
  403: 'kube_forbidden',
  404: 'kube_not_found',
  409: 'kube_conflict',
  422: 'kube_invalid',
  429: 'kube_throttled',
};

function kubeError(status: number, answer: unknown, what: string, server: string): AppError {
  const { message, reason } = (typeof answer === 'object' && answer !== null ? answer : {}) as {
    message?: unknown;
    reason?: unknown;
  };
  const code = reason === 'AlreadyExists' ? 'kube_already_exists' : (codeByStatus[status] ?? 'kube_failed');
  const said = typeof message === 'string' ? message : `status ${status}`;
  return new AppError(code, `the API server at ${server} refused ${what.split('?')[0]}: ${said}`, {
    detail: { status },
  });
}
