/** How much virtual nodes reflect, under the metric names of Liqo: items handled and failures, by namespace, kind and node. */
import type { ControllerMetrics } from '#kube/run/controller.ts';
import { type Family, familyText } from './metrics-text.ts';

/** Controllers that reflect, by name, as Liqo calls their reflectors. */
const resources: Readonly<Record<string, string>> = {
  'offloaded-pod': 'Pod',
  'reflect-service': 'Service',
  'reflect-endpointslice': 'EndpointSlice',
  'reflect-ingress': 'Ingress',
  'reflect-configmap': 'ConfigMap',
  'reflect-secret': 'Secret',
  'reflect-serviceaccount': 'ServiceAccount',
  'reflect-event': 'Event',
};

interface Count {
  readonly labels: Readonly<Record<'namespace' | 'reflector_resource' | 'cluster_id' | 'node_name', string>>;
  items: number;
  errors: number;
}

const families = [
  ['items', 'liqo_virtual_kubelet_reflection_item_counter', 'Items that were handled by reflection.'],
  ['errors', 'liqo_virtual_kubelet_reflection_error_counter', 'Items whose handling failed and is tried again.'],
] as const;

export class ReflectionCounters {
  readonly #counts = new Map<string, Count>();

  /** For the controllers of one virtual node; `clusterId` is its provider. */
  of(nodeName: string, clusterId: string): ControllerMetrics {
    return {
      reconciled: (controller, outcome, _seconds, key) => {
        const resource = resources[controller];
        if (resource === undefined) return;
        const namespace = key.slice(0, key.indexOf('/'));
        const labels = { namespace, reflector_resource: resource, cluster_id: clusterId, node_name: nodeName };
        const at = Object.values(labels).join('/');
        const count = this.#counts.get(at) ?? { labels, items: 0, errors: 0 };
        this.#counts.set(at, count);
        count.items++;
        if (outcome === 'error') count.errors++;
      },
      queued: () => {},
    };
  }

  /** A node that is gone is not told of any more. */
  forget(nodeName: string): void {
    for (const [at, { labels }] of this.#counts) if (labels.node_name === nodeName) this.#counts.delete(at);
  }

  /** Prometheus text. */
  text(): string {
    const counts = [...this.#counts.values()];
    return families
      .map(([member, name, help]): Family => {
        return { name, type: 'counter', help, samples: counts.map((count) => [count.labels, count[member]]) };
      })
      .map(familyText)
      .join('');
  }
}
