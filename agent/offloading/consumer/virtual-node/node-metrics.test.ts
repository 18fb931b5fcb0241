import { expect, test } from 'vitest';
import type { Cache, Change } from '#kube/model/types.ts';
import type { Pod } from '#shared/domain/kube-object.ts';
import { Registry } from '#shared/metrics/registry.ts';
import { ManualClock } from '#shared/ports/clock.ts';
import { NodeMetrics } from './node-metrics.ts';

function start() {
  const registry = new Registry();
  const clock = new ManualClock(1_000_000_000_000);
  const pods: Pod[] = [];
  const made = new Set<string>();
  let tell: (change: Change<Pod>) => void = () => undefined;
  const localPods = {
    list: () => pods,
    subscribe: (listener: (change: Change<Pod>) => void) => {
      tell = listener;
      return () => undefined;
    },
  } as unknown as Cache<Pod>;
  const metrics = new NodeMetrics(registry, clock);
  let items = [{ namespace: 'shop', controller: 'reflect-secret', count: 2 }];
  const end = metrics.follow({
    name: 'milan',
    slice: 'milan',
    provider: 'milan-id',
    localPods,
    reflected: () => items,
    isMade: ({ metadata }) => made.has(metadata.name),
    answers: () => true,
  });
  const lines = (name: string): string[] =>
    registry
      .text()
      .split('\n')
      .filter((line) => line.startsWith(name));
  return {
    metrics,
    clock,
    made,
    end,
    lines,
    pods,
    reflected: (count: number) => {
      items = [{ namespace: 'shop', controller: 'reflect-secret', count }];
    },
    change: (change: Change<Pod>) => tell(change),
  };
}

const pod = (name: string, ready: boolean, phase = 'Pending'): Pod =>
  ({
    metadata: { name, namespace: 'shop', uid: name },
    spec: { containers: [{ name: 'app', resources: { requests: { cpu: '250m' } } }] },
    status: { phase, conditions: [{ type: 'Ready', status: ready ? 'True' : 'False', lastTransitionTime: 'x' }] },
  }) as unknown as Pod;

const of = 'cluster_id="milan-id",node_name="milan"';

test('the item counter says what is reflected and falls with it', () => {
  const { reflected, lines } = start();
  const line = `liqo_virtual_kubelet_reflection_item_counter{namespace="shop",reflector_resource="Secret",${of}}`;
  expect(lines('liqo_virtual_kubelet_reflection_item')).toEqual([`${line} 2`]);
  reflected(1);
  expect(lines('liqo_virtual_kubelet_reflection_item')).toEqual([`${line} 1`]);
  reflected(0);
  expect(lines('liqo_virtual_kubelet_reflection_item')).toEqual([]);
});

test('failures of reflection are counted by kind, and those of a node that is gone are not told', () => {
  const { metrics, lines, end } = start();
  const counted = metrics.controllers('milan', 'milan-id');
  counted.reconciled('offloaded-pod', 'error', 0.1, 'shop/web');
  counted.reconciled('offloaded-pod', 'settled', 0.1, 'shop/web');
  counted.reconciled('node-heartbeat', 'error', 0.1, 'milan');
  expect(lines('liqo_virtual_kubelet_reflection_error')).toEqual([
    `liqo_virtual_kubelet_reflection_error_counter{namespace="shop",reflector_resource="Pod",${of}} 1`,
  ]);
  expect(lines('isthmus_reconciles_total{controller="offloaded-pod",outcome="error"}')).toHaveLength(1);
  end();
  expect(lines('liqo_virtual_kubelet')).toEqual([]);
});

test('a pod is timed from its binding until it is Ready, and waits until the provider has made its pod', () => {
  const { clock, change, pods, lines, made } = start();
  const web = pod('web', false);
  pods.push(web);
  change({ after: web });
  clock.advance(90_000);
  expect(lines('isthmus_pod_wait_seconds')).toEqual([`isthmus_pod_wait_seconds{${of}} 90`]);
  made.add('web');
  expect(lines('isthmus_pod_wait_seconds')).toEqual([`isthmus_pod_wait_seconds{${of}} 0`]);
  change({ before: web, after: pod('web', true, 'Running') });
  expect(lines('isthmus_pod_bound_to_ready_seconds_sum')).toEqual([`isthmus_pod_bound_to_ready_seconds_sum{${of}} 90`]);
  change({ before: pod('web', false), after: pod('web', true, 'Running') });
  expect(lines('isthmus_pod_bound_to_ready_seconds_count')).toEqual([
    `isthmus_pod_bound_to_ready_seconds_count{${of}} 1`,
  ]);
});

test('what pods of a node use leaves finished pods out', () => {
  const { pods, lines } = start();
  pods.push(pod('web', true, 'Running'), pod('job', false, 'Succeeded'));
  const slice = 'cluster_id="milan-id",role="Provider",slice="milan"';
  expect(lines('isthmus_slice_used')).toEqual([
    `isthmus_slice_used{${slice},resource="cpu"} 0.25`,
    `isthmus_slice_used{${slice},resource="pods"} 1`,
  ]);
  expect(lines('isthmus_offloaded_pods')).toEqual([
    `isthmus_offloaded_pods{${of},phase="Running"} 1`,
    `isthmus_offloaded_pods{${of},phase="Succeeded"} 1`,
  ]);
});
