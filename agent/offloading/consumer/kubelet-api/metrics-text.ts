/** Usage of pods in the words of the kubelet: Prometheus text for `/metrics/resource` and `/metrics/cadvisor`, JSON for `/stats/summary`. Pure. */
import type { Pod } from '#shared/domain/kube-object.ts';
import type { PodUsage, Usage } from './pod-usage.ts';

type Labels = Readonly<Record<string, string>>;
export type FindPod = (namespace: string, name: string) => Pod | undefined;

interface Family {
  readonly name: string;
  readonly type: 'counter' | 'gauge';
  readonly help: string;
  readonly samples: readonly (readonly [labels: Labels, value: number, atMs?: number])[];
}

const escaped = (text: string): string => text.replaceAll('\\', '\\\\').replaceAll('"', '\\"').replaceAll('\n', '\\n');
const labelText = (labels: Labels): string => {
  const pairs = Object.entries(labels).map(([key, value]) => `${key}="${escaped(value)}"`);
  return pairs.length === 0 ? '' : `{${pairs.join(',')}}`;
};

function familyText({ name, type, help, samples }: Family): string {
  const lines = samples.map(([labels, value, atMs]) => `${name}${labelText(labels)} ${value} ${atMs ?? ''}`.trimEnd());
  return [`# HELP ${name} ${help}`, `# TYPE ${name} ${type}`, ...lines, ''].join('\n');
}

const sum = (values: readonly number[]): number => values.reduce((a, b) => a + b, 0);
const coreSeconds = (coreNanos: number): number => coreNanos / 1e9;
const memoryOf = ({ containers }: PodUsage): number => sum(containers.map(({ memoryBytes }) => memoryBytes));
const totalOf = ({ containers }: PodUsage): number => sum(containers.map(({ cpuTotal }) => cpuTotal));
const rateOf = ({ containers }: PodUsage): number => sum(containers.map(({ cpuNanoCores }) => cpuNanoCores));
const newest = (pods: readonly PodUsage[]): number | undefined =>
  pods.length === 0 ? undefined : Math.max(...pods.map(({ atMs }) => atMs));

function startOf(pod: Pod | undefined, container: string): number | undefined {
  const state = pod?.status?.containerStatuses?.find(({ name }) => name === container)?.state;
  const at = Date.parse(String(state?.running?.startedAt ?? pod?.status?.startTime ?? ''));
  return Number.isNaN(at) ? undefined : at;
}

/** A problem may be in a server's own words, of which each further line would be read as a sample. */
const remarks = (problems: readonly string[]): string =>
  problems.map((problem) => `# ${problem.replace(/\s+/g, ' ')}\n`).join('');

/** What metrics-server reads. Per node: only what its offloaded pods use, not the provider as a whole. */
export function resourceText({ pods, cpuTotal, problems }: Usage, find: FindPod): string {
  const at = newest(pods);
  const perContainer = pods.flatMap((pod) =>
    pod.containers.map((container) => ({
      container,
      labels: { container: container.name, namespace: pod.namespace, pod: pod.name },
      atMs: pod.atMs,
      startMs: startOf(find(pod.namespace, pod.name), container.name),
    })),
  );
  const perPod = pods.map((pod) => ({ pod, labels: { namespace: pod.namespace, pod: pod.name } }));
  const families: readonly Family[] = [
    {
      name: 'container_cpu_usage_seconds_total',
      type: 'counter',
      help: 'Cumulative cpu time consumed by the container in core-seconds',
      samples: perContainer.map(({ labels, container, atMs }) => [labels, coreSeconds(container.cpuTotal), atMs]),
    },
    {
      name: 'container_memory_working_set_bytes',
      type: 'gauge',
      help: 'Current working set of the container in bytes',
      samples: perContainer.map(({ labels, container, atMs }) => [labels, container.memoryBytes, atMs]),
    },
    {
      name: 'container_start_time_seconds',
      type: 'gauge',
      help: 'Start time of the container since unix epoch in seconds',
      samples: perContainer.flatMap(({ labels, startMs }) =>
        startMs === undefined ? [] : [[labels, startMs / 1000] as const],
      ),
    },
    {
      name: 'pod_cpu_usage_seconds_total',
      type: 'counter',
      help: 'Cumulative cpu time consumed by the pod in core-seconds',
      samples: perPod.map(({ labels, pod }) => [labels, coreSeconds(totalOf(pod)), pod.atMs]),
    },
    {
      name: 'pod_memory_working_set_bytes',
      type: 'gauge',
      help: 'Current working set of the pod in bytes',
      samples: perPod.map(({ labels, pod }) => [labels, memoryOf(pod), pod.atMs]),
    },
    {
      name: 'node_cpu_usage_seconds_total',
      type: 'counter',
      help: 'Cumulative cpu time consumed by the pods of this virtual node in core-seconds',
      samples: at === undefined ? [] : [[{}, coreSeconds(cpuTotal), at]],
    },
    {
      name: 'node_memory_working_set_bytes',
      type: 'gauge',
      help: 'Current working set of the pods of this virtual node in bytes',
      samples: at === undefined ? [] : [[{}, sum(pods.map(memoryOf)), at]],
    },
    {
      name: 'resource_scrape_error',
      type: 'gauge',
      help: '1 if there was an error while getting container metrics, 0 otherwise',
      samples: [[{}, problems.length === 0 ? 0 : 1]],
    },
  ];
  return remarks(problems) + families.map(familyText).join('');
}

/** The two families of cAdvisor that can be had without rights on the provider's nodes. */
export function cadvisorText({ pods, problems }: Usage, find: FindPod): string {
  const rows = pods.flatMap((pod) =>
    pod.containers.map((container) => {
      const spec = find(pod.namespace, pod.name)?.spec?.containers.find(({ name }) => name === container.name);
      const labels = { container: container.name, image: spec?.image ?? '', namespace: pod.namespace, pod: pod.name };
      return { container, labels, atMs: pod.atMs };
    }),
  );
  const families: readonly Family[] = [
    {
      name: 'container_cpu_usage_seconds_total',
      type: 'counter',
      help: 'Cumulative cpu time consumed in seconds.',
      samples: rows.map(({ labels, container, atMs }) => [labels, coreSeconds(container.cpuTotal), atMs]),
    },
    {
      name: 'container_memory_working_set_bytes',
      type: 'gauge',
      help: 'Current working set in bytes.',
      samples: rows.map(({ labels, container, atMs }) => [labels, container.memoryBytes, atMs]),
    },
    {
      name: 'container_scrape_error',
      type: 'gauge',
      help: '1 if there was an error while getting container metrics, 0 otherwise',
      samples: [[{}, problems.length === 0 ? 0 : 1]],
    },
  ];
  return remarks(problems) + families.map(familyText).join('');
}

/** `stats/v1alpha1` Summary. */
export function summary({ pods, cpuTotal }: Usage, nodeName: string, find: FindPod): Record<string, unknown> {
  const time = (atMs: number): string => new Date(atMs).toISOString();
  const cpu = (atMs: number, nanoCores: number, total: number) => ({
    time: time(atMs),
    usageNanoCores: Math.round(nanoCores),
    usageCoreNanoSeconds: Math.round(total),
  });
  const memory = (atMs: number, bytes: number) => ({ time: time(atMs), workingSetBytes: Math.round(bytes) });
  const start = (atMs: number | undefined) => (atMs === undefined ? {} : { startTime: time(atMs) });
  const at = newest(pods);
  const node =
    at === undefined
      ? {}
      : { cpu: cpu(at, sum(pods.map(rateOf)), cpuTotal), memory: memory(at, sum(pods.map(memoryOf))) };
  return {
    node: { nodeName, ...node },
    pods: pods.map((usage) => {
      const { namespace, name, atMs, containers } = usage;
      const pod = find(namespace, name);
      const began = Date.parse(String(pod?.status?.startTime ?? ''));
      return {
        podRef: { name, namespace, uid: pod?.metadata.uid ?? '' },
        ...start(Number.isNaN(began) ? undefined : began),
        cpu: cpu(atMs, rateOf(usage), totalOf(usage)),
        memory: memory(atMs, memoryOf(usage)),
        containers: containers.map((container) => ({
          name: container.name,
          ...start(startOf(pod, container.name)),
          cpu: cpu(atMs, container.cpuNanoCores, container.cpuTotal),
          memory: memory(atMs, container.memoryBytes),
        })),
      };
    }),
  };
}
