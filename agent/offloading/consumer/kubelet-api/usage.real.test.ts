/** What `kubectl top` and scrapers read of a virtual node, against a provider that serves metrics.k8s.io. */
import { readFile } from 'node:fs/promises';
import * as https from 'node:https';
import path from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { createConnectCluster } from '#agent/runtime/connect-cluster.ts';
import { systemIds } from '#agent/runtime/ids.ts';
import { customResourceDefinitions, nodes, pods } from '#shared/domain/core-kinds.ts';
import type { KubeObject, ResourceType } from '#shared/domain/kube-object.ts';
import { silentLog } from '#shared/ports/log.ts';
import { systemClock } from '#shared/ports/system-clock.ts';
import { eventually } from '#test/harness/eventually.ts';
import {
  boundPod,
  createVirtualNode,
  mapNamespaces,
  type OffloadingClusters,
  runPod,
  startOffloadingClusters,
} from '#test/harness/offloading-clusters.ts';
import { createVirtualNodeController } from '../virtual-node/controller.ts';

let world: OffloadingClusters;
const stop = new AbortController();
let ended: Promise<void>;

type PodMetrics = KubeObject & Record<string, unknown>;
const podMetrics: ResourceType<PodMetrics> = {
  group: 'metrics.k8s.io',
  version: 'v1beta1',
  kind: 'PodMetrics',
  plural: 'pods',
  namespaced: true,
};

/** A kind of that group, in place of a metrics server: the paths and the JSON are the same. */
const metricsKind = {
  apiVersion: 'apiextensions.k8s.io/v1',
  kind: 'CustomResourceDefinition',
  metadata: {
    name: 'pods.metrics.k8s.io',
    annotations: { 'api-approved.kubernetes.io': 'unapproved, stands in for a metrics server' },
  },
  spec: {
    group: 'metrics.k8s.io',
    scope: 'Namespaced',
    names: { plural: 'pods', singular: 'pod', kind: 'PodMetrics' },
    versions: [
      {
        name: 'v1beta1',
        served: true,
        storage: true,
        schema: { openAPIV3Schema: { type: 'object', 'x-kubernetes-preserve-unknown-fields': true } },
      },
    ],
  },
};

const measured = (name: string, node: string, cpu: string): PodMetrics => ({
  apiVersion: 'metrics.k8s.io/v1beta1',
  kind: 'PodMetrics',
  metadata: { name, namespace: 'demo-cons', labels: { 'offloading.liqo.io/nodename': node } },
  timestamp: '2026-11-21T10:00:00Z',
  window: '10s',
  containers: [{ name: 'app', usage: { cpu, memory: '32Mi' } }],
});
/** At the endpoint itself, as metrics-server does: the API server proxies to no loopback address. */
async function page(node: string, what: string): Promise<string> {
  const read = (file: string) => readFile(path.join(world.servers.consumer.dir, 'pki', file), 'utf8');
  const [cert, key] = [await read('admin.crt'), await read('admin.key')];
  const { status } = (await world.consumer.api.get(nodes, { name: node })) ?? {};
  const port = status?.daemonEndpoints?.kubeletEndpoint?.Port ?? 0;
  const options = { host: '127.0.0.1', port, path: `/${what}`, rejectUnauthorized: false, agent: false, cert, key };
  return new Promise((resolve, reject) => {
    https
      .get(options, (response) => {
        const pieces: Buffer[] = [];
        response.on('data', (piece: Buffer) => pieces.push(piece));
        response.on('end', () => resolve(Buffer.concat(pieces).toString()));
      })
      .on('error', reject);
  });
}

beforeAll(async () => {
  world = await startOffloadingClusters(['demo']);
  const deps = { clock: systemClock, log: silentLog, ids: systemIds };
  const controller = createVirtualNodeController({
    ...deps,
    cluster: world.consumer,
    clusterId: 'cons',
    podIp: '127.0.0.1',
    kubeletPortBase: 13_250,
    systemNamespace: 'liqo',
    connectPeer: createConnectCluster(deps),
  });
  ended = controller.run(stop.signal);
  const { api } = world.consumer;
  for (const [node, pod] of [
    ['vn1', 'web'],
    ['vn2', 'db'],
  ] as const) {
    await createVirtualNode(world, node);
    if (node === 'vn1') await mapNamespaces(world, ['demo']);
    await eventually('the Node', () => api.get(nodes, { name: node }));
    await api.create(pods, boundPod('demo', pod, node));
    await runPod(world, 'demo-cons', pod);
    await eventually('running', async () => {
      const local = await api.get(pods, { namespace: 'demo', name: pod });
      return local?.status?.phase === 'Running';
    });
  }
}, 900_000);
afterAll(async () => {
  stop.abort();
  await ended;
  await world?.stop();
});

test('a provider without metrics.k8s.io is said in the page, which is otherwise in order', async () => {
  const text = await page('vn1', 'metrics/resource');
  expect(text).toContain('# the provider serves no metrics.k8s.io');
  expect(text).toContain('resource_scrape_error 1');
  expect(JSON.parse(await page('vn1', 'stats/summary')).pods).toEqual([]);
});

test('B125 with two virtual nodes to one provider, each tells the usage of its own pods and no other', async () => {
  const { api } = world.provider;
  await api.create(customResourceDefinitions, metricsKind as never);
  await eventually('metrics.k8s.io served', () => api.list(podMetrics, { namespace: 'demo-cons' }));
  await api.create(podMetrics, measured('web', 'vn1', '250m'));
  await api.create(podMetrics, measured('db', 'vn2', '1'));
  await api.create(podMetrics, measured('stranger', 'vn1', '8'));
  const read = async (node: string) => {
    const found = JSON.parse(await page(node, 'stats/summary'));
    return found.pods.length > 0 ? found : undefined;
  };
  const [one, two] = [await eventually('vn1', () => read('vn1')), await eventually('vn2', () => read('vn2'))];
  const names = (summary: { pods: { podRef: { namespace: string; name: string } }[] }) =>
    summary.pods.map(({ podRef }) => `${podRef.namespace}/${podRef.name}`);
  expect(names(one)).toEqual(['demo/web']);
  expect(names(two)).toEqual(['demo/db']);
  expect(one.node.cpu.usageNanoCores).toBe(250_000_000);
  const text = await page('vn1', 'metrics/resource');
  expect(text).toMatch(/^container_cpu_usage_seconds_total\{container="app",namespace="demo",pod="web"\} 2.5 \d+$/m);
  expect(text).toMatch(/^container_start_time_seconds\{container="app",namespace="demo",pod="web"\} \d+$/m);
  expect(text).toContain('resource_scrape_error 0');
  expect(text).not.toMatch(/db|stranger/);
  expect(await page('vn2', 'metrics/cadvisor')).toMatch(
    /^container_memory_working_set_bytes\{container="app",image="demo:1",namespace="demo",pod="db"\} 33554432 \d+$/m,
  );
});
