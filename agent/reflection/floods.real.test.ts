/** One namespace with thousands of objects, beside one with a single object. */
import { afterAll, beforeAll, expect, test } from 'vitest';
import type { KubeApi } from '#agent/kube/types.ts';
import { type ConnectProvider, createConnectProvider } from '#agent/kubelet/peer.ts';
import { systemClock } from '#agent/runtime/clock.ts';
import { configMaps, namespaces, pods, secrets, services } from '#shared/domain/core-kinds.ts';
import type { KubeObject, ResourceType } from '#shared/domain/kube-object.ts';
import { silentLog } from '#shared/ports/log.ts';
import { eventually } from '#test/harness/eventually.ts';
import { boundPod, createVirtualNode, mapNamespaces, type OffloadingWorld } from '#test/harness/offloading-world.ts';
import { type Running, startConsumer, startReflectionWorld } from '#test/harness/reflection-world.ts';

let world: OffloadingWorld;
let agent: Running;

beforeAll(async () => {
  world = await startReflectionWorld();
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
const connect = createConnectProvider({ clock: systemClock, log: silentLog });
const noting: ConnectProvider = async (kubeconfig, signal) => {
  const connection = await connect(kubeconfig, signal);
  const note = ({ kind }: ResourceType, { metadata }: { metadata: { namespace?: string; name: string } }): void =>
    void written.push(`${kind} ${metadata.namespace}/${metadata.name}`);
  const api: KubeApi = {
    ...connection.api,
    apply(type, object, options, until) {
      note(type, object);
      return connection.api.apply(type, object, options, until);
    },
    create(type, object, options, until) {
      note(type, object);
      return connection.api.create(type, object, options, until);
    },
  };
  return { ...connection, api };
};

interface Flood {
  readonly type: ResourceType<KubeObject>;
  readonly count: number;
  readonly body: (namespace: string, name: string) => KubeObject;
  /** As what it is at the provider. */
  readonly twin?: string;
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
    twin: 'ShadowPod',
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
    const { type, count, body, twin = type.kind } = flood;
    const local = `flood-${type.plural}`;
    const { consumer, provider } = world;
    for (const [api, name] of [[consumer.api, local] as const, [provider.api, `${local}-cons`] as const])
      await api.create(namespaces, { apiVersion: 'v1', kind: 'Namespace', metadata: { name } });
    await fill(local, flood);
    const flooded = (): number => written.filter((one) => one.startsWith(`${twin} ${local}-cons/many-`)).length;
    await mapNamespaces(world, ['demo', local]);
    await eventually('the flood', () => flooded() > 0);
    await consumer.api.create(type, body('demo', 'single'));
    const [before, askedAt] = [flooded(), systemClock.now()];
    await eventually('the single one at the provider', () => written.includes(`${twin} demo-cons/single`));
    const tookMs = systemClock.now() - askedAt;
    const meanwhile = written.indexOf(`${twin} demo-cons/single`) - written.findIndex((one) => one.includes(local));
    console.info(
      `${twin}: ${before} of ${count} were written; ${meanwhile} when the single one's turn came, ${tookMs} ms`,
    );
    expect(meanwhile).toBeLessThan(count / 2);
    await eventually('all of the flood', () => flooded() >= count);
    await mapNamespaces(world, ['demo']);
  },
);
