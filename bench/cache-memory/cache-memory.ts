/** Heap per cached pod: pods as a cluster has them (status, managed fields), on a real API server, through the agent's own caches. */
import { performance } from 'node:perf_hooks';
import v8 from 'node:v8';
import vm from 'node:vm';
import { createCaches } from '#kube/cache/informer-factory.ts';
import { createKubeApi } from '#kube/http/client.ts';
import type { ClusterConnection } from '#kube/http/connection.ts';
import { connectKubeconfig } from '#kube/http/kubeconfig.ts';
import type { Cache, CacheOptions, KubeApi } from '#kube/model/types.ts';
import { namespaces, pods, serviceAccounts } from '#shared/domain/core-kinds.ts';
import type { Pod } from '#shared/domain/kube-object.ts';
import { silentLog } from '#shared/ports/log.ts';
import { systemClock } from '#shared/ports/system-clock.ts';
import { startApiServer } from '#test/harness/kube-apiserver.ts';
import { repositoryRoot } from '#test/testbed/repository-root.ts';
import { type BenchResult, median, thisMachine } from '../result.ts';

const podCount = 2_000;
const rounds = 5;
const namespace = 'cached';
const deps = { clock: systemClock, log: silentLog };

/** Value: bytes of heap per pod with the default transform, which drops managed fields only. */
export async function run(): Promise<BenchResult> {
  const server = await startApiServer();
  try {
    const connection = await connectKubeconfig(server.kubeconfig);
    const api = createKubeApi(connection, deps);
    await fill(api);
    const kept: Cache<Pod>[] = [];
    const whole: number[] = [];
    const pruned: number[] = [];
    const seconds: number[] = [];
    for (let round = 0; round < rounds; round++) {
      const measured = await measure(connection, {}, kept);
      whole.push(measured.bytesPerPod);
      seconds.push(measured.syncSeconds);
      pruned.push((await measure(connection, { transform: prune }, kept)).bytesPerPod);
    }
    const [sample] = await api.list(pods, { namespace, fieldSelector: 'metadata.name=pod-00000' });
    return {
      name: 'cache-memory',
      unit: 'bytes of heap per cached pod',
      value: median(whole),
      samples: whole,
      phases: {
        'with a transform that keeps metadata, node and phase': median(pruned),
        'size of that pod as JSON': JSON.stringify(sample).length,
        'pods cached': podCount,
        'seconds to list them': median(seconds),
      },
      machine: thisMachine(repositoryRoot),
    };
  } finally {
    await server.stop();
  }
}

/** Caches stay until the end: what a stopped one gives back, at some time, would falsify the next figure. */
async function measure(
  connection: ClusterConnection,
  options: CacheOptions<Pod>,
  kept: Cache<Pod>[],
): Promise<{ readonly bytesPerPod: number; readonly syncSeconds: number }> {
  const before = heapAfterCollection();
  const startedAt = performance.now();
  const cache = createCaches(connection, deps, new AbortController().signal).cache(pods, { namespace, ...options });
  await cache.synced();
  const syncSeconds = (performance.now() - startedAt) / 1000;
  kept.push(cache);
  const bytesPerPod = (heapAfterCollection() - before) / cache.list().length;
  return { bytesPerPod, syncSeconds };
}

const prune = (pod: Pod): Pod =>
  ({
    apiVersion: pod.apiVersion,
    kind: pod.kind,
    metadata: pod.metadata,
    spec: { nodeName: pod.spec?.nodeName },
    status: { phase: pod.status?.phase },
  }) as unknown as Pod;

let collect: (() => void) | undefined;
function heapAfterCollection(): number {
  if (collect === undefined) {
    v8.setFlagsFromString('--expose-gc');
    collect = vm.runInNewContext('gc') as () => void;
  }
  // The second one collects what finalizers of the first let go.
  collect();
  collect();
  return process.memoryUsage().heapUsed;
}

async function fill(api: KubeApi): Promise<void> {
  await api.create(namespaces, { apiVersion: 'v1', kind: 'Namespace', metadata: { name: namespace } });
  await api.create(serviceAccounts, {
    apiVersion: 'v1',
    kind: 'ServiceAccount',
    metadata: { namespace, name: 'default' },
  });
  const numbers = Array.from({ length: podCount }, (_, i) => i);
  const lanes = Array.from({ length: 16 }, async () => {
    for (let i = numbers.pop(); i !== undefined; i = numbers.pop()) await createPod(api, i);
  });
  await Promise.all(lanes);
}

async function createPod(api: KubeApi, i: number): Promise<void> {
  const name = `pod-${String(i).padStart(5, '0')}`;
  const made = await api.apply(pods, podOf(name, i), { fieldManager: 'bench' });
  const ip = `10.0.${i >> 8}.${i & 255}`;
  const at = new Date(1_700_000_000_000 + i * 1000).toISOString().replace('.000', '');
  const condition = (type: string) => ({ type, status: 'True', lastProbeTime: null, lastTransitionTime: at });
  const status = {
    phase: 'Running',
    hostIP: '192.0.2.1',
    podIP: ip,
    podIPs: [{ ip }],
    qosClass: 'Burstable',
    startTime: at,
    conditions: ['PodReadyToStartContainers', 'Initialized', 'Ready', 'ContainersReady', 'PodScheduled'].map(condition),
    containerStatuses: ['app', 'sidecar'].map((container) => ({
      name: container,
      ready: true,
      started: true,
      restartCount: 0,
      image: `registry.example/${container}:1.2.3`,
      imageID: `registry.example/${container}@sha256:${'0123456789abcdef'.repeat(4)}`,
      containerID: `containerd://${i.toString(16).padStart(64, '0')}`,
      state: { running: { startedAt: at } },
      lastState: {},
    })),
  };
  await api.mergePatch(pods, { namespace, name: made.metadata.name }, { status }, { subresource: 'status' });
}

const podOf = (name: string, i: number) => ({
  apiVersion: 'v1',
  kind: 'Pod',
  metadata: {
    namespace,
    name,
    labels: { app: `app-${i % 20}`, 'pod-template-hash': (i % 20).toString(16).padStart(9, '7') },
    annotations: { 'example.dev/checksum': i.toString(16).padStart(64, 'a') },
  },
  spec: {
    nodeName: `node-${i % 5}`,
    containers: ['app', 'sidecar'].map((container) => ({
      name: container,
      image: `registry.example/${container}:1.2.3`,
      args: ['--listen=:8080', `--shard=${i}`],
      env: [
        { name: 'POD_NAME', valueFrom: { fieldRef: { fieldPath: 'metadata.name' } } },
        { name: 'MODE', value: 'production' },
      ],
      ports: [{ name: 'http', containerPort: container === 'app' ? 8080 : 8081 }],
      resources: { requests: { cpu: '10m', memory: '16Mi' }, limits: { memory: '64Mi' } },
      readinessProbe: { httpGet: { path: '/ready', port: 'http' } },
    })),
  },
});
