/** What the virtual nodes of this process count: what is reflected, pods and how long they take, and whether providers answer. */
import { amounts } from '#agent/metrics/peers.ts';
import { countControllers } from '#agent/metrics/process.ts';
import type { ReflectedItems } from '#agent/reflection/model/reflected-items.ts';
import type { ControllerMetrics } from '#kube/model/metrics.ts';
import type { Cache } from '#kube/model/types.ts';
import { keyOf, type Pod } from '#shared/domain/kube-object.ts';
import { type Amounts, addAmounts, podUsage, showAmount } from '#shared/domain/pod-resources.ts';
import { controllerMetrics } from '#shared/metrics/definitions.ts';
import type { Registry } from '#shared/metrics/registry.ts';
import type { Clock } from '#shared/ports/clock.ts';

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

/** One virtual node, as of now. */
export interface NodeFigures {
  readonly name: string;
  readonly slice: string;
  readonly provider: string;
  readonly localPods: Cache<Pod>;
  readonly reflected: () => Iterable<ReflectedItems>;
  /** The provider has made a Pod for this one. */
  readonly isMade: (pod: Pod) => boolean;
  readonly answers: () => boolean;
}

export class NodeMetrics {
  readonly #registry: Registry;
  readonly #clock: Clock;

  constructor(registry: Registry, clock: Clock) {
    this.#registry = registry;
    this.#clock = clock;
  }

  /** For the controllers of one virtual node. */
  controllers(node_name: string, cluster_id: string): ControllerMetrics {
    const registry = this.#registry;
    const all = countControllers(registry);
    return {
      ...all,
      reconciled(controller, outcome, seconds, key) {
        all.reconciled(controller, outcome, seconds, key);
        const reflector_resource = resources[controller];
        if (outcome !== 'error' || reflector_resource === undefined) return;
        const namespace = key.slice(0, key.indexOf('/'));
        registry.add(controllerMetrics.reflectionErrors, { namespace, reflector_resource, cluster_id, node_name });
      },
    };
  }

  /** Until the returned function is called; then nothing tells of this node any more. */
  follow(node: NodeFigures): () => void {
    const registry = this.#registry;
    const of = { cluster_id: node.provider, node_name: node.name };
    const waits = new PodWaits(this.#clock, (seconds) => registry.observe(controllerMetrics.boundToReady, of, seconds));
    const ends = [
      node.localPods.subscribe(({ before, after }) => waits.changed(before, after)),
      registry.collect(controllerMetrics.reflectedItems, () => itemsOf(node)),
      registry.collect(controllerMetrics.offloadedPods, () =>
        node.localPods.list().map((pod) => [{ ...of, phase: pod.status?.phase ?? 'Pending' }, 1]),
      ),
      registry.collect(controllerMetrics.podWait, () => {
        return [[of, waits.longest(node.localPods.list().filter((pod) => !hasEnded(pod) && !node.isMade(pod)))]];
      }),
      registry.collect(controllerMetrics.providerAnswers, () => [[of, node.answers() ? 1 : 0]]),
      registry.collect(controllerMetrics.used, () =>
        amounts(usedBy(node.localPods.list()), node.provider, 'Provider', node.slice),
      ),
    ];
    return () => {
      for (const end of ends) end();
      const isOfNode = ({ node_name }: { readonly node_name: string }): boolean => node_name === node.name;
      registry.forget(controllerMetrics.reflectionErrors, isOfNode);
      registry.forget(controllerMetrics.boundToReady, isOfNode);
    };
  }
}

const hasEnded = ({ status }: Pod): boolean => status?.phase === 'Succeeded' || status?.phase === 'Failed';

const readyAt = (pod: Pod | undefined): string | undefined =>
  pod?.status?.conditions?.find(({ type, status }) => type === 'Ready' && status === 'True')?.lastTransitionTime;

function* itemsOf({ name, provider, reflected }: NodeFigures) {
  for (const { namespace, controller, count } of reflected()) {
    const reflector_resource = resources[controller];
    if (reflector_resource === undefined || count === 0) continue;
    yield [{ namespace, reflector_resource, cluster_id: provider, node_name: name }, count] as const;
  }
}

function usedBy(pods: readonly Pod[]): Record<string, string> {
  const sum = pods
    .filter((pod) => pod.spec !== undefined && !hasEnded(pod))
    .reduce((total: Amounts, { spec }) => addAmounts(total, spec === undefined ? {} : podUsage(spec)), {});
  return Object.fromEntries(Object.entries(sum).map(([resource, amount]) => [resource, showAmount(resource, amount)]));
}

/** Since when pods have been bound, by the own clock: pods that were there before this process are not timed. */
class PodWaits {
  readonly #clock: Clock;
  readonly #ready: (seconds: number) => void;
  /** Only of pods that were never Ready. */
  readonly #boundAt = new Map<string, number>();

  constructor(clock: Clock, ready: (seconds: number) => void) {
    this.#clock = clock;
    this.#ready = ready;
  }

  changed(before: Pod | undefined, after: Pod | undefined): void {
    const pod = after ?? before;
    if (pod === undefined) return;
    const key = pod.metadata.uid ?? keyOf(pod);
    const boundAt = this.#boundAt.get(key);
    if (after === undefined || hasEnded(after)) this.#boundAt.delete(key);
    else if (before === undefined && readyAt(after) === undefined) this.#boundAt.set(key, this.#bindingOf(after));
    else if (boundAt !== undefined && readyAt(after) !== undefined) {
      this.#boundAt.delete(key);
      this.#ready(Math.max(0, this.#clock.now() - boundAt) / 1_000);
    }
  }

  /** Seconds; 0 without pods. */
  longest(pods: readonly Pod[]): number {
    const now = this.#clock.now();
    return Math.max(0, ...pods.map((pod) => (now - (this.#boundAt.get(pod.metadata.uid ?? '') ?? now)) / 1_000));
  }

  /** The scheduler says so in whole seconds: what was bound within the last two is taken to be bound now. */
  #bindingOf(pod: Pod): number {
    const now = this.#clock.now();
    const { lastTransitionTime } = pod.status?.conditions?.find(({ type }) => type === 'PodScheduled') ?? {};
    const told = Date.parse(String(lastTransitionTime ?? ''));
    return Number.isNaN(told) || now - told < 2_000 ? now : told;
  }
}
