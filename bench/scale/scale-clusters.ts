/** Two joined clusters, peered, whose provider has hollow nodes: pods are offloaded to nodes that cost nothing. */

import path from 'node:path';
import type { KubeApi } from '#kube/model/types.ts';
import { deployments, namespaces, nodes, pods } from '#shared/domain/core-kinds.ts';
import { messageOf } from '#shared/errors/message-of.ts';
import { namespaceOffloadings } from '#shared/schema/liqo/namespace-offloading.ts';
import { eventually } from '#test/harness/eventually.ts';
import { type BenchClusters, names, openBenchClusters } from '../peering/peering-clusters.ts';
import { type HollowNodes, hollowLabel, startHollowNodes } from './hollow-nodes.ts';

export const offloaded = 'bench-offloaded';
/** At the provider, without offloading: what the same pods take there. */
export const alone = 'bench-alone';
export type Where = typeof offloaded | typeof alone;
/** Where offloaded pods are at the provider. */
export const remoteNamespace = `${offloaded}-${names.consumer}`;

export type ClientLimits = 'default' | 'lifted';

export interface ScaleClusters extends BenchClusters {
  readonly hollow: Pick<HollowNodes, 'pid'>;
  /** Of the controller manager and the scheduler of both clusters. */
  limitClients(limits: ClientLimits): Promise<void>;
}

/** What Kubernetes itself sets unless told, and what no burst of ours reaches. */
const clientFlags: Readonly<Record<ClientLimits, Readonly<Record<string, readonly string[]>>>> = {
  default: {
    'kube-controller-manager': ['--kube-api-qps=20', '--kube-api-burst=30'],
    'kube-scheduler': ['--kube-api-qps=50', '--kube-api-burst=100'],
  },
  lifted: {
    'kube-controller-manager': ['--kube-api-qps=5000', '--kube-api-burst=5000'],
    'kube-scheduler': ['--kube-api-qps=5000', '--kube-api-burst=5000'],
  },
};
/** Of the control planes, with and without offloading: two of them and what they serve have two cores, but memory enough, and no other clients to be fair to. */
const sparing = { gcPercent: 800, apiServerFlags: ['--enable-priority-and-fairness=false'] } as const;
/** A hollow node whose lease came late would lose its pods. */
const patience = '--node-monitor-grace-period=15m';

export async function openScaleClusters(
  root: string,
  pods: number,
  log: (line: string) => void,
): Promise<ScaleClusters> {
  const bench = await openBenchClusters(root, log, sparing);
  const clusters = [names.consumer, names.provider].map((name) => bench.world.cluster(name));
  const limitClients = async (limits: ClientLimits): Promise<void> => {
    for (const cluster of clusters) {
      for (const component of ['kube-controller-manager', 'kube-scheduler'] as const) {
        const more = component === 'kube-controller-manager' ? [patience] : [];
        await cluster.restartController(component, [...(clientFlags[limits][component] ?? []), ...more]);
      }
    }
  };
  try {
    const provider = bench.world.cluster(names.provider);
    const count = 4;
    const hollow = await startHollowNodes({
      api: bench.provider.api,
      kubeconfigPath: provider.kubeconfigPath,
      nodes: count,
      podsPerNode: Math.ceil((3 * pods + 500) / count),
      podCidr: provider.podCidr.replace('.0.0/16', '.64.0/18'),
      logFile: path.join(provider.dir, 'kwok.log'),
      gcPercent: sparing.gcPercent,
      log,
    });
    bench.alsoEnd(() => hollow.stop());
    await peer(bench, pods, log);
    // From here on new pods go to the hollow nodes only.
    for (const { name } of provider.nodes) await provider.kubectl('cordon', name);
    await prepareNamespaces(bench);
    return { ...bench, hollow, limitClients };
  } catch (error) {
    await bench.close();
    throw error;
  }
}

async function peer({ ask, consumer }: BenchClusters, pods: number, log: (line: string) => void): Promise<void> {
  await ask('POST', '/v1/peerings?wait=25', {
    consumer: names.consumer,
    provider: names.provider,
    resources: { cpu: '1000', memory: '2Ti', pods: String(pods + 200) },
  });
  const isReady = async (): Promise<boolean> => {
    const virtual = await consumer.api.list(nodes, { labelSelector: 'liqo.io/type=virtual-node' });
    return virtual.some(({ status }) => status?.conditions?.some((c) => c.type === 'Ready' && c.status === 'True'));
  };
  await eventually('the virtual node is Ready', isReady, { withinMs: 90_000 });
  log('peered, the virtual node is Ready');
}

async function prepareNamespaces({ consumer, provider }: BenchClusters): Promise<void> {
  const make = (api: KubeApi, name: string) =>
    api.create(namespaces, { apiVersion: 'v1', kind: 'Namespace', metadata: { name } });
  await Promise.all([make(consumer.api, offloaded), make(provider.api, alone)]);
  await consumer.api.create(namespaceOffloadings, {
    apiVersion: 'offloading.liqo.io/v1beta1',
    kind: 'NamespaceOffloading',
    metadata: { namespace: offloaded, name: 'offloading' },
    spec: { namespaceMappingStrategy: 'DefaultName', podOffloadingStrategy: 'Remote' },
  });
  const isOffloaded = async (): Promise<boolean> => {
    const found = await consumer.api.get(namespaceOffloadings, { namespace: offloaded, name: 'offloading' });
    return found?.status?.offloadingPhase === 'Ready';
  };
  await eventually('the namespace is offloaded', isOffloaded, { withinMs: 60_000 });
}

/** The pod that is started so often: two labels, requests, an environment variable, a probe. */
export const podSpec = (where: Where) => ({
  ...(where === alone ? { nodeSelector: { [hollowLabel]: 'true' } } : {}),
  tolerations: [{ key: hollowLabel, operator: 'Exists', effect: 'NoSchedule' }],
  terminationGracePeriodSeconds: 1,
  containers: [
    {
      name: 'app',
      image: 'isthmus.test/workload:1',
      args: ['sleep'],
      env: [{ name: 'MODE', value: 'production' }],
      ports: [{ name: 'http', containerPort: 8080 }],
      resources: { requests: { cpu: '10m', memory: '16Mi' }, limits: { memory: '64Mi' } },
      readinessProbe: { httpGet: { path: '/ready', port: 'http' } },
    },
  ],
});

export const clusterOf = (fixture: BenchClusters, where: Where) =>
  where === offloaded ? fixture.consumer : fixture.provider;

/** Seconds from the creation of a Deployment until `count` of its pods are Ready. They stay. */
export async function burst(fixture: ScaleClusters, where: Where, count: number, withinMs: number): Promise<number> {
  const { api, caches } = clusterOf(fixture, where);
  const stop = new AbortController();
  const known = caches.scoped(
    pods,
    {
      namespace: where,
      transform: ({ apiVersion, kind, metadata, status }) => ({
        apiVersion,
        kind,
        metadata,
        status: { conditions: (status?.conditions ?? []).filter(({ type }) => type === 'Ready') },
      }),
    },
    stop.signal,
  );
  const isReady = ({ status }: { status?: { conditions?: readonly { status: string }[] } }): boolean =>
    status?.conditions?.[0]?.status === 'True';
  try {
    await known.synced(stop.signal);
    let ready = 0;
    let done = 0;
    known.subscribe(({ before, after }) => {
      ready += Number(after !== undefined && isReady(after)) - Number(before !== undefined && isReady(before));
      if (ready >= count && done === 0) done = performance.now();
    });
    const labels = { app: 'many', tier: 'bench' };
    const begun = performance.now();
    await api.create(deployments, {
      apiVersion: 'apps/v1',
      kind: 'Deployment',
      metadata: { namespace: where, name: 'many' },
      spec: {
        replicas: count,
        selector: { matchLabels: labels },
        template: { metadata: { labels }, spec: podSpec(where) },
      },
    } as never);
    await eventually(`${count} pods of ${where} are Ready`, () => done > 0 || ready > count, { withinMs }).catch(
      (error: unknown) => {
        throw new Error(`${ready} of ${count} pods were Ready: ${messageOf(error)}`);
      },
    );
    return (done - begun) / 1000;
  } finally {
    stop.abort();
  }
}

/** Removes the Deployment and its pods; resolves with the seconds until nothing of them is left on either side. */
export async function clear(fixture: ScaleClusters, where: Where): Promise<number> {
  const cluster = fixture.world.cluster(where === offloaded ? names.consumer : names.provider);
  const { api } = clusterOf(fixture, where);
  const begun = performance.now();
  await api.delete(deployments, { namespace: where, name: 'many' }, { propagationPolicy: 'Background' });
  const replicaSets = `/apis/apps/v1/namespaces/${where}/replicasets`;
  await cluster.kubectl('delete', '--raw', replicaSets);
  // One request for all of them: the garbage collector would take its client limits' time.
  await cluster.kubectl('delete', '--raw', `/api/v1/namespaces/${where}/pods`);
  const isEmpty = async (one: KubeApi, namespace: string): Promise<boolean> =>
    !(JSON.parse(await one.getPath(`/api/v1/namespaces/${namespace}/pods?limit=1`)) as { items: unknown[] }).items
      .length;
  await eventually(`no pod of ${where} is left`, () => isEmpty(api, where), { withinMs: 300_000, everyMs: 250 });
  if (where === offloaded) {
    const left = () => isEmpty(fixture.provider.api, remoteNamespace);
    await eventually(`no pod of ${remoteNamespace} is left`, left, { withinMs: 300_000, everyMs: 250 });
  }
  return (performance.now() - begun) / 1000;
}
