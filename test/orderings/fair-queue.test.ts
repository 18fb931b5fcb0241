import { expect, test } from 'vitest';
import { createShadowEndpointSliceController } from '#agent/offloading/provider/endpoints/controller.ts';
import { createShadowPodController } from '#agent/offloading/provider/shadow-pods/controller.ts';
import type { Cluster } from '#kube/model/types.ts';
import { sharedByMany } from '#shared/async/abort-scope.ts';
import { endpointSlices, pods } from '#shared/domain/core-kinds.ts';
import type { KubeObject, ResourceType } from '#shared/domain/kube-object.ts';
import { ManualClock } from '#shared/ports/clock.ts';
import { silentLog } from '#shared/ports/log.ts';
import { MemoryCluster } from './memory-cluster.ts';

const many = 300;
/** Those whom workers had in hand already, and some that were first by chance. */
const few = 60;

const consumers = ['mad', 'modest'] as const;
const labelsOf = (consumer: string) => ({
  'offloading.liqo.io/origin': consumer,
  'offloading.liqo.io/destination': 'here',
});
const specs: Readonly<Record<string, object>> = {
  ShadowPod: { pod: { containers: [{ name: 'app', image: 'app:1' }] } },
  ShadowEndpointSlice: { template: { addressType: 'IPv4', endpoints: [], ports: [] } },
};

test.each<{
  readonly kind: string;
  readonly becomes: ResourceType<KubeObject>;
  readonly create: typeof createShadowPodController | typeof createShadowEndpointSliceController;
}>([
  { kind: 'ShadowPod', becomes: pods as never, create: createShadowPodController },
  { kind: 'ShadowEndpointSlice', becomes: endpointSlices as never, create: createShadowEndpointSliceController },
])('a $kind of one consumer does not wait for the hundreds that another one has', async ({ kind, becomes, create }) => {
  const clock = new ManualClock();
  const cluster = new MemoryCluster(clock, () => 0);
  for (const consumer of consumers)
    cluster.create({
      apiVersion: 'v1',
      kind: 'Namespace',
      metadata: {
        name: `apps-${consumer}`,
        labels: { 'liqo.io/remote-cluster-id': consumer },
        annotations: { 'liqo.io/managed-by-namespace-map': `liqo-tenant-${consumer}/here` },
      },
    });
  const make = (consumer: string, name: string): void =>
    void cluster.create({
      apiVersion: 'offloading.liqo.io/v1beta1',
      kind,
      metadata: { namespace: `apps-${consumer}`, name, labels: labelsOf(consumer) },
      spec: specs[kind],
    } as never);
  for (let i = 0; i < many; i++) make('mad', `many-${i}`);
  make('modest', 'one');
  const stop = new AbortController();
  const running = create({
    cluster: cluster.open('own', sharedByMany(stop.signal)) as Cluster,
    clock,
    log: silentLog,
    random: () => 0,
  }).run(stop.signal);
  /** Namespaces, in the order in which something was made in them. */
  const made = () => cluster.all(becomes).map(({ metadata }) => metadata.namespace);
  for (let turn = 0; made().length <= many && turn < 20 * many; turn++) {
    while (cluster.deliverOne());
    await new Promise((resolve) => setImmediate(resolve));
  }
  stop.abort();
  await running;
  expect(made()).toHaveLength(many + 1);
  expect(made().indexOf('apps-modest')).toBeLessThan(few);
});
