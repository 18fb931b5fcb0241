/** How long a peering takes: from the broker's acceptance to the virtual node, to the first pod, and back to nothing; and how a link of single gateways stands their end. */
import { nodes, pods } from '#shared/domain/core-kinds.ts';
import type { Pod } from '#shared/domain/kube-object.ts';
import type { Connection } from '#shared/schema/liqo/connection.ts';
import { identities } from '#shared/schema/liqo/identity.ts';
import { networkKinds } from '#shared/schema/liqo/network-resources.ts';
import { resourceSlices } from '#shared/schema/liqo/resource-slice.ts';
import { tenants } from '#shared/schema/liqo/tenant.ts';
import { virtualNodes } from '#shared/schema/liqo/virtual-node.ts';
import { eventually } from '#test/harness/eventually.ts';
import { type BenchOptions, type BenchResult, median, medianPhases, thisMachine } from '../result.ts';
import { gatewayRestarts } from './gateway-restart.ts';
import { type BenchClusters, names, openBenchClusters } from './peering-clusters.ts';
import { startStopwatch } from './stopwatch.ts';
import { type Waits, waitLines, waitsUntilReady } from './waits.ts';

const namespace = 'bench';
const deadlineMs = 60_000;
/** A run in which any step came later tells what it waited for. */
const tellsBeyondSeconds = 5;

interface Run {
  /** Seconds from acceptance to each step on the way to Ready. */
  readonly steps: Readonly<Record<string, number>>;
  readonly waits: Waits;
  /** Everything that was measured, in seconds. */
  readonly sample: Readonly<Record<string, number>>;
}

export async function run({ root, runs = 10, log }: BenchOptions): Promise<BenchResult> {
  const clusters = await openBenchClusters(root, log);
  try {
    await clusters.world.cluster(names.consumer).kubectl('create', 'namespace', namespace);
    await once(clusters); // warms up both sides: the first certificate of a cluster takes longer to sign
    const done: Run[] = [];
    for (let i = 0; i < runs; i += 1) {
      const one = await once(clusters);
      const { sample, steps, waits } = one;
      done.push(one);
      log(
        `run ${i + 1} of ${runs}: Ready after ${waits.ready.toFixed(2)} s, node ready after ${sample['node ready']?.toFixed(2)} s, first pod ${sample['first pod running after node ready']?.toFixed(2)} s later, unpeered in ${sample.unpeer?.toFixed(2)} s`,
      );
      if (Math.max(...Object.values(steps)) > tellsBeyondSeconds) for (const line of waitLines(steps, waits)) log(line);
    }
    const restarts = await withLink(clusters, () => gatewayRestarts(clusters, log));
    const samples = done.map(({ sample }) => sample);
    const ready = samples.map((sample) => sample['node ready'] ?? Number.NaN);
    return {
      name: 'peering',
      unit: 's',
      value: median(ready),
      samples: ready,
      phases: { ...medianPhases(samples), 'slowest run, until Ready': slowest(done), ...restarts },
      raw: done,
      machine: thisMachine(root),
    };
  } finally {
    await clusters.close();
  }
}

const slowest = (runs: readonly Run[]): number => Math.max(...runs.flatMap(({ steps }) => Object.values(steps)));

async function once({ ask, consumer, provider, world: clusters }: BenchClusters): Promise<Run> {
  const { caches } = consumer;
  const kept = [
    caches.cache(identities),
    caches.cache(resourceSlices),
    caches.cache(virtualNodes),
    caches.cache(networkKinds.connections),
    caches.cache(nodes),
    caches.cache(pods, { namespace }),
    provider.caches.cache(tenants),
    provider.caches.cache(networkKinds.connections),
  ];
  await Promise.all(kept.map((cache) => cache.synced()));
  const begun = performance.now();
  const watch = startStopwatch(deadlineMs);
  const seen = {
    'certificate issued': watch.first(
      provider.caches.cache(tenants),
      (t) => t.status?.authParams?.signedCRT !== undefined,
      'certificate',
    ),
    'identity applied': watch.first(caches.cache(identities), (i) => i.spec.type === 'ControlPlane', 'Identity'),
    'slice accepted': watch.first(
      caches.cache(resourceSlices),
      (s) => (s.status?.conditions ?? []).filter((c) => c.status === 'Accepted').length === 2,
      'slice accepted',
    ),
    'virtual node made': watch.first(caches.cache(virtualNodes), () => true, 'VirtualNode'),
    'link connected': watch.first(
      caches.cache<Connection>(networkKinds.connections),
      (c) => c.status?.value === 'Connected',
      'Connection Connected',
    ),
    'link connected at the provider': watch.first(
      provider.caches.cache<Connection>(networkKinds.connections),
      (c) => c.status?.value === 'Connected',
      'Connection Connected at the provider',
    ),
    'node ready': watch.first(
      caches.cache(nodes),
      (n) => n.metadata.name === names.provider && isReady(n.status?.conditions),
      'Node Ready',
    ),
  };
  const { id } = await ask<{ id: string }>('POST', '/v1/peerings', {
    consumer: names.consumer,
    provider: names.provider,
    resources: { cpu: '2', memory: '2Gi', pods: '20' },
    network: {},
  });
  const accepted = performance.now() - begun;
  const waiting = waitsUntilReady(ask, id, deadlineMs);
  // Handled below, after the steps: a step that never comes is the better message.
  waiting.catch(() => undefined);
  const entries = await Promise.all(
    Object.entries(seen).map(async ([what, at]) => [what, ((await at) - accepted) / 1000] as const),
  );
  const waits = await waiting;
  const steps = { ...Object.fromEntries(entries), 'peering Ready': waits.ready };
  const pod = await firstPod({ consumer, world: clusters });
  const unpeer = await endPeering(ask, id);
  return { steps, waits, sample: { 'request accepted': accepted / 1000, ...steps, ...pod, unpeer } };
}

/** The namespace is offloaded and the pod created at once when the node is ready, as an impatient user would. */
async function firstPod({
  consumer,
  world: clusters,
}: Pick<BenchClusters, 'consumer' | 'world'>): Promise<Record<string, number>> {
  const begun = performance.now();
  const watch = startStopwatch(deadlineMs);
  const running = watch.first(
    consumer.caches.cache(pods, { namespace }),
    (p) => p.status?.phase === 'Running',
    'first pod Running',
  );
  await consumer.api.create(
    {
      group: 'offloading.liqo.io',
      version: 'v1beta1',
      kind: 'NamespaceOffloading',
      plural: 'namespaceoffloadings',
      namespaced: true,
    },
    {
      apiVersion: 'offloading.liqo.io/v1beta1',
      kind: 'NamespaceOffloading',
      metadata: { name: 'offloading', namespace },
      spec: { podOffloadingStrategy: 'Remote' },
    } as never,
  );
  await consumer.api.create(pods, podOnTheProvider);
  const seconds = (await running) / 1000;
  const beforeEnd = performance.now();
  await consumer.api.delete(pods, { namespace, name: podOnTheProvider.metadata.name });
  await clusters.mustIsthmus(
    'unoffload',
    'namespace',
    namespace,
    '--kubeconfig',
    clusters.cluster(names.consumer).kubeconfigPath,
  );
  return {
    'first pod running after node ready': seconds,
    'unoffload, pod running': (performance.now() - beforeEnd) / 1000,
    total: (performance.now() - begun) / 1000,
  };
}

/** Bound by a node selector and a toleration of its own, so that it does not matter whether the webhook knows the namespace already. */
const podOnTheProvider: Pod = {
  apiVersion: 'v1',
  kind: 'Pod',
  metadata: { name: 'first', namespace },
  spec: {
    nodeSelector: { 'liqo.io/type': 'virtual-node' },
    tolerations: [{ key: 'virtual-node.liqo.io/not-allowed', operator: 'Exists', effect: 'NoExecute' }],
    terminationGracePeriodSeconds: 1,
    containers: [{ name: 'sleep', image: 'isthmus.test/workload:1', imagePullPolicy: 'IfNotPresent', args: ['sleep'] }],
  },
};

async function withLink<T>({ ask }: BenchClusters, work: () => Promise<T>): Promise<T> {
  const requested = { consumer: names.consumer, provider: names.provider, network: {} };
  const { id } = await ask<{ id: string }>('POST', '/v1/peerings?wait=25', requested);
  const done = await work();
  await endPeering(ask, id);
  return done;
}

async function endPeering(ask: BenchClusters['ask'], id: string): Promise<number> {
  const begun = performance.now();
  await ask('DELETE', `/v1/peerings/${id}`);
  await eventually(
    'the peering is Gone',
    async () => (await ask<{ phase: string }>('GET', `/v1/peerings/${id}`)).phase === 'Gone',
    {
      withinMs: deadlineMs,
      everyMs: 50,
    },
  );
  return (performance.now() - begun) / 1000;
}

const isReady = (conditions: readonly { type: string; status: string }[] | undefined): boolean =>
  conditions?.some((c) => c.type === 'Ready' && c.status === 'True') ?? false;
