/** The offloading world with the parts that reflect: the consumer's virtual nodes, and the provider's turning of ShadowEndpointSlices into EndpointSlices. */

import {
  createVirtualNodeController,
  type VirtualNodeDeps,
} from '#agent/offloading/consumer/virtual-node/controller.ts';
import { createShadowEndpointSliceController } from '#agent/offloading/provider/endpoints/controller.ts';
import { createConnectCluster } from '#agent/runtime/connect-cluster.ts';
import { systemIds } from '#agent/runtime/ids.ts';
import { coreEvents, namespaces, nodes } from '#shared/domain/core-kinds.ts';
import type { KubeObject, Node, ObjectMeta, ResourceType } from '#shared/domain/kube-object.ts';
import { silentLog } from '#shared/ports/log.ts';
import { systemClock } from '#shared/ports/system-clock.ts';
import { foreignClusters } from '#shared/schema/liqo/foreign-cluster.ts';
import { eventually } from './eventually.ts';
import { type OffloadingClusters, startOffloadingClusters } from './offloading-clusters.ts';

export interface Running {
  stop(): Promise<void>;
}

/** `demo` and `default` are offloaded to `demo-cons` and `default-cons`; node `worker` is one of the consumer's own. */
export async function startReflectionClusters(): Promise<OffloadingClusters> {
  const clusters = await startOffloadingClusters(['demo']);
  const { api } = clusters.provider;
  await api.create(namespaces, { apiVersion: 'v1', kind: 'Namespace', metadata: { name: 'default-cons' } });
  for (const name of ['demo-cons', 'default-cons']) {
    const metadata = {
      labels: { 'liqo.io/remote-cluster-id': 'cons' },
      annotations: { 'liqo.io/managed-by-namespace-map': 'liqo-tenant-cons/cons' },
    };
    await api.mergePatch(namespaces, { name }, { metadata });
  }
  for (const { api: one } of [clusters.consumer, clusters.provider]) {
    await one.create(namespaces, { apiVersion: 'v1', kind: 'Namespace', metadata: { name: 'liqo' } });
  }
  await clusters.consumer.api.create(nodes, { apiVersion: 'v1', kind: 'Node', metadata: { name: 'worker' } } as Node);
  await api.create(foreignClusters, {
    apiVersion: 'core.liqo.io/v1beta1',
    kind: 'ForeignCluster',
    metadata: { name: 'cons' },
    spec: { clusterID: 'cons' },
  });
  return clusters;
}

export function startConsumer(clusters: OffloadingClusters, options: Partial<VirtualNodeDeps> = {}): Running {
  const stop = new AbortController();
  const deps = { clock: systemClock, log: silentLog };
  const controller = createVirtualNodeController({
    ...deps,
    cluster: clusters.consumer,
    clusterId: 'cons',
    ids: systemIds,
    podIp: '127.0.0.1',
    kubeletPortBase: 12_450,
    systemNamespace: 'liqo',
    connectPeer: createConnectCluster(deps),
    ...options,
  });
  return running(controller.run(stop.signal), stop);
}

export function startProvider(clusters: OffloadingClusters): Running {
  const stop = new AbortController();
  const deps = { cluster: clusters.provider, clock: systemClock, log: silentLog };
  return running(createShadowEndpointSliceController(deps).run(stop.signal), stop);
}

const running = (ended: Promise<void>, stop: AbortController): Running => ({
  async stop() {
    stop.abort();
    await ended;
  },
});

interface Body {
  readonly metadata: Partial<ObjectMeta> & { readonly name: string };
  readonly [member: string]: unknown;
}

/** Both sides of namespace `demo`, in few words. */
export function sidesOf(clusters: OffloadingClusters) {
  const apply = async <T extends KubeObject>(
    cluster: OffloadingClusters['consumer'],
    namespace: string,
    type: ResourceType<T>,
    body: Body,
  ): Promise<T> =>
    cluster.api.create(type, {
      apiVersion: type.group === '' ? type.version : `${type.group}/${type.version}`,
      kind: type.kind,
      ...body,
      metadata: { namespace, ...body.metadata },
    } as unknown as T);
  return {
    create: <T extends KubeObject>(type: ResourceType<T>, body: Body) => apply(clusters.consumer, 'demo', type, body),
    createThere: <T extends KubeObject>(type: ResourceType<T>, body: Body) =>
      apply(clusters.provider, 'demo-cons', type, body),
    patch: <T extends KubeObject>(type: ResourceType<T>, name: string, body: unknown) =>
      clusters.consumer.api.mergePatch(type, { namespace: 'demo', name }, body),
    remove: <T extends KubeObject>(type: ResourceType<T>, name: string) =>
      clusters.consumer.api.delete(type, { namespace: 'demo', name }),
    here: <T extends KubeObject>(type: ResourceType<T>, name: string) =>
      clusters.consumer.api.get(type, { namespace: 'demo', name }),
    there: <T extends KubeObject>(type: ResourceType<T>, name: string) =>
      clusters.provider.api.get(type, { namespace: 'demo-cons', name }),
    /** The object at the provider, once it fulfils the condition. */
    arrived: <T extends KubeObject>(type: ResourceType<T>, name: string, is: (object: T) => boolean = () => true) =>
      eventually(`${type.kind} ${name} at the provider`, async () => {
        const found = await clusters.provider.api.get(type, { namespace: 'demo-cons', name });
        return found && is(found) ? found : undefined;
      }),
    gone: <T extends KubeObject>(type: ResourceType<T>, name: string) =>
      eventually(
        `${type.kind} ${name} gone from the provider`,
        async () => (await clusters.provider.api.get(type, { namespace: 'demo-cons', name })) === undefined,
      ),
    said: (name: string, reason: string) =>
      eventually(`event ${reason} about ${name}`, async () =>
        (await clusters.consumer.api.list(coreEvents, { namespace: 'demo' })).find(
          (event) => event.involvedObject.name === name && event.reason === reason,
        ),
      ),
  };
}
