/** Heap of 10,000 IP objects, as the API server sends them, in the controller's cache, in a node process's cache, and as grants. */
import v8 from 'node:v8';
import vm from 'node:vm';
import { rangeIps } from '#agent/model/network-selections.ts';
import { Ipam } from '#agent/network/ipam/ipam.ts';
import { watchNodeAgentObjects } from '#agent/network/node/watch.ts';
import type { Cache, CacheOptions, Caches, Cluster } from '#kube/model/types.ts';
import type { KubeObject, ResourceType } from '#shared/domain/kube-object.ts';
import type { Ip } from '#shared/schema/liqo/ip.ts';
import { repositoryRoot } from '#test/testbed/repository-root.ts';
import { type BenchResult, thisMachine } from '../result.ts';

const count = 10_000;
const mib = 2 ** 20;

/** With what tools leave on an object: fields' owners are dropped by every cache, annotations are not. */
const text = (i: number): string =>
  JSON.stringify({
    apiVersion: 'ipam.liqo.io/v1alpha1',
    kind: 'IP',
    metadata: {
      name: `web-7d9c5b6f4d-${i}`,
      namespace: 'team-a',
      uid: `0f0e6b6e-3c0a-4a59-9b1d-${String(i).padStart(12, '0')}`,
      resourceVersion: String(100_000 + i),
      generation: 1,
      creationTimestamp: '2026-01-01T00:00:00Z',
      finalizers: ['ip.ipam.liqo.io/finalizer'],
      labels: {
        'liqo.io/managed': 'true',
        'offloading.liqo.io/pod-name': `web-7d9c5b6f4d-${i}`,
        'offloading.liqo.io/pod-namespace': 'team-a',
        'ipam.liqo.io/network-name': 'external-cidr',
        'ipam.liqo.io/network-namespace': 'liqo',
      },
      annotations: { 'kubectl.kubernetes.io/last-applied-configuration': 'x'.repeat(400) },
    },
    spec: { ip: `10.71.${i >> 8}.${i & 255}` },
    status: {
      ip: `10.70.${i >> 8}.${i & 255}`,
      cidr: '10.70.0.0/16',
      conditions: [
        { type: 'Granted', status: 'True', reason: 'Granted', message: '', lastTransitionTime: '2026-01-01T00:00:00Z' },
      ],
    },
  });

type Transform = (ip: Ip) => Ip;

/** The transform that a component asks its cache of IPs for. */
function transformOf(ask: (caches: Caches) => void): Transform {
  let found: Transform = (ip) => ip;
  const cache = <T extends KubeObject>(type: ResourceType<T>, options: CacheOptions<T> = {}): Cache<T> => {
    if (type.kind === 'IP' && options.transform) found = options.transform as unknown as Transform;
    return { subscribe: () => () => undefined } as unknown as Cache<T>;
  };
  ask({ cache, scoped: cache, synced: async () => undefined });
  return found;
}

v8.setFlagsFromString('--expose-gc');
const collect = vm.runInNewContext('gc') as () => void;
function heap(): number {
  collect();
  collect();
  return process.memoryUsage().heapUsed;
}

const kept: unknown[] = [];
function sizeOf(build: () => unknown): number {
  const before = heap();
  kept.push(build());
  return Math.round(((heap() - before) / mib) * 100) / 100;
}
const objects = (transform: Transform) => () =>
  new Map(Array.from({ length: count }, (_, i) => [`team-a/${i}`, transform(JSON.parse(text(i)) as Ip)]));

export async function run(): Promise<BenchResult> {
  const stop = new AbortController().signal;
  const whole = sizeOf(objects((ip) => ip));
  const controller = sizeOf(objects(transformOf((caches) => void rangeIps(caches))));
  const fabric = sizeOf(objects(transformOf((caches) => void watchNodeAgentObjects({ caches } as Cluster, stop))));
  const grants = sizeOf(() => {
    const ipam = new Ipam();
    ipam.grantPrefix({ owner: 'Network liqo/external-cidr', wanted: '10.70.0.0/16' });
    for (let i = 0; i < count; i++) ipam.grantAddress(`IP team-a/web-7d9c5b6f4d-${i}`, 'Network liqo/external-cidr');
    return ipam;
  });
  return {
    name: 'ip-memory',
    unit: `MiB of heap for ${count} IPs in the controller's cache`,
    value: controller,
    samples: [controller],
    phases: { 'without a transform': whole, "in a node process's cache": fabric, 'as grants': grants },
    machine: thisMachine(repositoryRoot),
  };
}
