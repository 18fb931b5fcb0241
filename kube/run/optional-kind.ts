/** Kinds that a cluster may lack: of one that is not served there is no object, and what works on it begins when it is. */
import type { Controller, KubeApi, ListOptions } from '#kube/model/types.ts';
import type { KubeObject, ObjectRef, ResourceType } from '#shared/domain/kube-object.ts';
import { AppError } from '#shared/errors/app-error.ts';
import { messageOf } from '#shared/errors/message-of.ts';
import type { ControllerMetrics } from '../model/metrics.ts';
import type { ControllerDeps } from './controller.ts';

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

/** How soon a kind that was installed is noticed. */
const lookMs = 15_000;
const nothing: ListOptions = { fieldSelector: 'metadata.name=isthmus-asks-whether-the-kind-is-served' };

export interface WhenServed {
  readonly name: string;
  readonly api: KubeApi;
  readonly types: readonly ResourceType[];
  /** Called once they are all served. Caches of them may be made in it, and not before. */
  readonly create: () => Controller;
}

/** A controller that begins when the API server serves all its kinds. Keys that are enqueued before are dropped: its first list brings them. */
export function whenServed({ name, api, types, create }: WhenServed, { clock, log }: ControllerDeps): Controller {
  let inner: Controller | undefined;
  let metrics: ControllerMetrics | undefined;

  async function isServed(signal: AbortSignal): Promise<boolean> {
    for (const type of types) if ((await listIfServed(api, type, nothing, signal)) === undefined) return false;
    return true;
  }

  async function awaitKinds(signal: AbortSignal): Promise<void> {
    for (;;) {
      try {
        if (await isServed(signal)) return;
      } catch (error) {
        if (signal.aborted) throw error;
        log.debug('whether kinds are served is not known', { controller: name, error: messageOf(error) });
      }
      await clock.sleep(lookMs, signal);
    }
  }

  return {
    name,
    enqueue: (key) => inner?.enqueue(key),
    measure(by) {
      metrics = by;
      inner?.measure(by);
    },
    async run(signal) {
      try {
        await awaitKinds(signal);
      } catch (error) {
        if (signal.aborted) return;
        throw error;
      }
      if (inner === undefined) {
        inner = create();
        if (metrics) inner.measure(metrics);
      }
      await inner.run(signal);
    },
  };
}
