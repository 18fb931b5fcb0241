/** Marks the Node whose work is done in this process, so that the DaemonSet keeps away from it and comes back to all others. */
import type { Cluster, Controller } from '#kube/model/types.ts';
import { createController, watch } from '#kube/run/controller.ts';
import { nodes } from '#shared/domain/core-kinds.ts';
import type { Node } from '#shared/domain/kube-object.ts';
import { nodeProcess, nodeProcessLabel } from '#shared/domain/network-keys.ts';
import { again } from '#shared/domain/outcome.ts';
import { codeOf } from '#shared/errors/app-error.ts';
import type { Clock } from '#shared/ports/clock.ts';
import type { Log } from '#shared/ports/log.ts';
import { decide } from './decide.ts';

export interface ServedNodeDeps {
  readonly cluster: Cluster;
  readonly clock: Clock;
  readonly log: Log;
  /** Undefined: this process works for no node. */
  readonly servedNode: string | undefined;
}

const key = 'nodes';
const checkMs = 600_000;

const retryMs = 5_000;

const nameOnly = ({ apiVersion, kind, metadata: { name, uid, resourceVersion } }: Node): Node =>
  ({ apiVersion, kind, metadata: { name, uid, resourceVersion } }) as Node;

export function createServedNodeController(deps: ServedNodeDeps): Controller {
  const { cluster, log, servedNode } = deps;
  const marked = cluster.caches.cache(nodes, {
    labelSelector: `${nodeProcessLabel}=${nodeProcess.shared}`,
    transform: nameOnly,
  });

  /** False: there is no such node. */
  async function label(name: string, value: string | null, signal: AbortSignal): Promise<boolean> {
    const patch = { metadata: { labels: { [nodeProcessLabel]: value } } };
    try {
      await cluster.api.mergePatch(nodes, { name }, patch, {}, signal);
      log.info(value === null ? 'node left to a process of its own' : 'node marked as served from here', {
        node: name,
      });
      return true;
    } catch (error) {
      if (codeOf(error) === 'kube_not_found') return false;
      throw error;
    }
  }

  const controller = createController(
    {
      name: 'served-node',
      workers: 1,
      watches: [watch(marked, () => [key])],
      async reconcile(_, signal) {
        const { mark, unmark } = decide(
          marked.list().map(({ metadata }) => metadata.name),
          servedNode,
        );
        for (const name of unmark) await label(name, null, signal);
        const found = mark === undefined || (await label(mark, nodeProcess.shared, signal));
        return again(found ? checkMs : retryMs);
      },
    },
    deps,
  );
  return {
    ...controller,
    async run(signal) {
      controller.enqueue(key);
      await controller.run(signal);
    },
  };
}
