/** One namespace with thousands of objects, beside one with a single object. */
import { afterAll, beforeAll, expect, test } from 'vitest';
import { type ConnectCluster, createConnectCluster } from '#agent/runtime/connect-cluster.ts';
import type { KubeApi } from '#kube/model/types.ts';
import { configMaps, namespaces, pods, secrets, services } from '#shared/domain/core-kinds.ts';
import type { KubeObject, ResourceType } from '#shared/domain/kube-object.ts';
import { silentLog } from '#shared/ports/log.ts';
import { systemClock } from '#shared/ports/system-clock.ts';
import { eventually } from '#test/harness/eventually.ts';
import {
  boundPod,
  createVirtualNode,
  mapNamespaces,
  type OffloadingClusters,
} from '#test/harness/offloading-clusters.ts';
import { type Running, startConsumer, startReflectionClusters } from '#test/harness/reflection-clusters.ts';

let world: OffloadingClusters;
let agent: Running;

beforeAll(async () => {
  world = await startReflectionClusters();
  agent = startConsumer(world, { connectPeer: noting });
  await createVirtualNode(world, 'vn1');
  await mapNamespaces(world, ['demo']);
  await eventually('the first copy', () => written.some((one) => one.startsWith('ConfigMap demo-cons/')));
}, 900_000);
afterAll(async () => {
  await agent?.stop();
  await world?.stop();
});

/** What was written to the provider, in order. */
const written: string[] = [];
const connect = createConnectCluster({ clock: systemClock, log: silentLog });
const noting: ConnectCluster = async (kubeconfig, signal) => {
  const connection = await connect(kubeconfig, signal);
  type Named = { metadata: { namespace?: string; name: string } };
  const note = async ({ kind }: ResourceType, { metadata }: Named): Promise<void> => {
    const now = held;
    if (now !== undefined && metadata.namespace === now.namespace) {
      now.waiting += 1;
      await now.until;
    }
    written.push(`${kind} ${metadata.namespace}/${metadata.name}`);
  };
  const api: KubeApi = {
    ...connection.api,
    async apply(type, object, options, until) {
      await note(type, object);
      return connection.api.apply(type, object, options, until);
    },
    async create(type, object, options, until) {
      await note(type, object);
      return connection.api.create(type, object, options, until);
    },
  };
  return { ...connection, api };
};

/** The namespace of the provider in which nothing is written for now, and how many writes wait there. */
let held: { readonly namespace: string; readonly until: Promise<void>; waiting: number } | undefined;
function hold(namespace: string): () => void {
  let release = (): void => {};
  const until = new Promise<void>((resolve) => {
    release = resolve;
  });
  held = { namespace, until, waiting: 0 };
  return () => {
    held = undefined;
    release();
  };
}

interface Flood {
  readonly type: ResourceType<KubeObject>;
  readonly count: number;
  readonly body: (namespace: string, name: string) => KubeObject;
  /** As what it is at the provider. */
  readonly copy?: string;
}

const plain =
  (kind: string, more: object) =>
  (namespace: string, name: string): KubeObject =>
    ({ apiVersion: 'v1', kind, metadata: { namespace, name }, ...more }) as KubeObject;
const floods: readonly Flood[] = [
  { type: configMaps, count: 500, body: plain('ConfigMap', { data: { a: '1' } }) },
  { type: secrets, count: 400, body: plain('Secret', { stringData: { a: '1' } }) },
  { type: services, count: 200, body: plain('Service', { spec: { ports: [{ port: 80 }] } }) },
  {
    type: pods,
    count: 150,
    body: (namespace: string, name: string) => boundPod(namespace, name, 'vn1'),
    copy: 'ShadowPod',
  },
].map((flood) => flood as unknown as Flood);

async function fill(namespace: string, { type, count, body }: Flood): Promise<void> {
  const numbers = Array.from({ length: count }, (_, i) => i);
  const lanes = Array.from({ length: 10 }, async () => {
    for (let i = numbers.pop(); i !== undefined; i = numbers.pop())
      await world.consumer.api.create(type, body(namespace, `many-${i}`));
  });
  await Promise.all(lanes);
}

test.each(floods)(
  '$count objects of $type.kind in one namespace do not keep another namespace waiting',
  async (flood) => {
    const { type, count, body, copy = type.kind } = flood;
    const local = `flood-${type.plural}`;
    const { consumer, provider } = world;
    for (const [api, name] of [[consumer.api, local] as const, [provider.api, `${local}-cons`] as const])
      await api.create(namespaces, { apiVersion: 'v1', kind: 'Namespace', metadata: { name } });
    await fill(local, flood);
    const flooded = (): number => written.filter((one) => one.startsWith(`${copy} ${local}-cons/many-`)).length;
    const listening = new AbortController();
    const heard = consumer.caches.scoped(type, { namespace: 'demo' }, listening.signal);
    // The flood stands still until the single one is known: how fast it is, and how fast a test asks, decide nothing then.
    const release = hold(`${local}-cons`);
    await mapNamespaces(world, ['demo', local]);
    await eventually('the flood', () => (held?.waiting ?? 0) > 0, { everyMs: 10 });
    await consumer.api.create(type, body('demo', 'single'));
    await eventually('word of the single one', () => heard.get({ namespace: 'demo', name: 'single' }), { everyMs: 10 });
    listening.abort();
    const releasedAt = systemClock.now();
    release();
    const single = `${copy} demo-cons/single`;
    await eventually('the single one at the provider', () => written.includes(single));
    const tookMs = systemClock.now() - releasedAt;
    const first = written
      .slice(0, written.indexOf(single))
      .filter((one) => one.includes(` ${local}-cons/many-`)).length;
    console.info(`${copy}: ${first} of ${count} were written before the single one, ${tookMs} ms`);
    expect(first).toBeLessThan(count / 2);
    await eventually('all of the flood', () => flooded() >= count, { withinMs: 60_000 });
    await mapNamespaces(world, ['demo']);
  },
);
