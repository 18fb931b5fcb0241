/** Work on kinds that a cluster may lack: it begins when they are served. */
import type { Controller, KubeApi, ListOptions } from '#kube/model/types.ts';
import type { ResourceType } from '#shared/domain/kube-object.ts';
import { messageOf } from '#shared/errors/message-of.ts';
import type { ControllerMetrics } from '../model/metrics.ts';
import { listIfServed } from '../model/optional-kind.ts';
import type { ControllerDeps } from './controller.ts';

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
