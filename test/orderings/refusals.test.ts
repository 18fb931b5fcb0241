import { expect, test } from 'vitest';
import { createShadowEndpointSliceController } from '#agent/offloading/provider/endpoints/controller.ts';
import type { Cluster } from '#kube/model/types.ts';
import { sharedByMany } from '#shared/async/abort-scope.ts';
import { AppError } from '#shared/errors/app-error.ts';
import { ManualClock } from '#shared/ports/clock.ts';
import { silentLog } from '#shared/ports/log.ts';
import { shadowEndpointSlices } from '#shared/schema/liqo/shadow-endpoint-slice.ts';
import { MemoryCluster } from './memory-cluster.ts';

const metadata = {
  namespace: 'apps-mad',
  name: 'wrong',
  labels: { 'offloading.liqo.io/origin': 'mad', 'offloading.liqo.io/destination': 'here' },
};

test('endpoints that the API server of the provider refuses are tried ever more rarely, and at once when they change', async () => {
  const clock = new ManualClock();
  const cluster = new MemoryCluster(clock, () => 0);
  let tries = 0;
  cluster.admit('EndpointSlice', () => {
    tries++;
    throw new AppError('kube_invalid', 'ports[0].name: Invalid value');
  });
  cluster.create({
    apiVersion: 'v1',
    kind: 'Namespace',
    metadata: {
      name: 'apps-mad',
      labels: { 'liqo.io/remote-cluster-id': 'mad' },
      annotations: { 'liqo.io/managed-by-namespace-map': 'liqo-tenant-mad/here' },
    },
  });
  const spec = { template: { addressType: 'IPv4', endpoints: [], ports: [] } };
  cluster.create({ apiVersion: 'offloading.liqo.io/v1beta1', kind: 'ShadowEndpointSlice', metadata, spec } as never);
  const stop = new AbortController();
  const own = cluster.open('own', sharedByMany(stop.signal)) as Cluster;
  const running = createShadowEndpointSliceController({
    cluster: own,
    clock,
    log: silentLog,
    random: () => 0,
  }).run(stop.signal);
  async function pass(seconds: number): Promise<void> {
    for (let s = 0; s <= seconds; s++) {
      while (cluster.deliverOne());
      for (let i = 0; i < 4; i++) await new Promise((resolve) => setImmediate(resolve));
      if (s < seconds) clock.advance(1_000);
    }
  }
  await pass(0);
  expect(tries).toBe(1);
  await pass(60);
  expect(tries).toBeGreaterThan(3);
  expect(tries).toBeLessThan(8);
  const before = tries;
  await pass(3_600);
  // Each five minutes, and once for each time that everything is looked at again.
  expect(tries - before).toBeLessThan(30);
  const known = tries;
  await own.api.mergePatch(shadowEndpointSlices, metadata, { metadata: { labels: { changed: 'yes' } } });
  await pass(0);
  expect(tries).toBe(known + 1);
  stop.abort();
  await running;
});
