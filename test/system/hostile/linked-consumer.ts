/** A consumer with a link to provider `prov` and the controllers that act on what a provider says; the test says it, by the provider's API server. */
import { createVirtualNodeCreatorController } from '#agent/offloading/consumer/virtual-node/creator-controller.ts';
import { createIdentityController } from '#agent/peering/identity/controller.ts';
import { createSliceIdentityController } from '#agent/peering/identity/slice-identity-controller.ts';
import { ensureClusterKeys } from '#agent/peering/keys/ensure-keys.ts';
import type { PeeringDeps } from '#agent/peering/model/deps.ts';
import { createLocalRenewController } from '#agent/peering/renewal/controllers.ts';
import { systemIds } from '#agent/runtime/ids.ts';
import { namespaces } from '#shared/domain/core-kinds.ts';
import { apiVersionOf, type KubeObject, type ResourceType } from '#shared/domain/kube-object.ts';
import { silentLog } from '#shared/ports/log.ts';
import { systemClock } from '#shared/ports/system-clock.ts';
import { networkKinds } from '#shared/schema/liqo/network-resources.ts';
import { type OffloadingClusters, tenantNamespace } from '#test/harness/offloading-clusters.ts';
import { startConsumer, startReflectionClusters } from '#test/harness/reflection-clusters.ts';

export const peerLabels = { 'liqo.io/remote-cluster-id': 'prov' };

export interface LinkedConsumer {
  readonly world: OffloadingClusters;
  create(type: ResourceType, name: string, spec: object, metadata?: object, namespace?: string): Promise<KubeObject>;
  stop(): Promise<void>;
}

/** Pods of the provider are 10.9.0.0/16 there, and 10.71.0.0/16 here. */
export async function startLinkedConsumer(): Promise<LinkedConsumer> {
  const stop = new AbortController();
  const world = await startReflectionClusters();
  const { api } = world.consumer;
  const create: LinkedConsumer['create'] = (type, name, spec, metadata = {}, namespace) =>
    api.create(type, {
      apiVersion: apiVersionOf(type),
      kind: type.kind,
      metadata: { name, ...(namespace && { namespace }), ...metadata },
      spec,
    } as KubeObject);
  await api.mergePatch(
    namespaces,
    { name: tenantNamespace },
    { metadata: { labels: { ...peerLabels, 'liqo.io/tenant-namespace': 'true' } } },
  );
  const link = { remote: { cidr: { pod: ['10.9.0.0/16'], external: ['10.70.0.0/16'] } } };
  const views = { remote: { cidr: { pod: ['10.71.0.0/16'], external: ['10.72.0.0/16'] } } };
  const place = { namespace: tenantNamespace, name: 'prov' };
  await create(networkKinds.configurations as ResourceType, 'prov', link, { labels: peerLabels }, tenantNamespace);
  await api.mergePatch(networkKinds.configurations, place, { status: views }, { subresource: 'status' });
  const agent = startConsumer(world);
  await ensureClusterKeys(api, 'liqo', stop.signal);
  const peering = {
    clock: systemClock,
    log: silentLog,
    cluster: world.consumer,
    clusterId: 'cons',
    ids: systemIds,
    config: {
      apiServerUrl: 'https://cons.example',
      apiServerCa: '',
      systemNamespace: 'liqo',
      credentials: 'certificate',
    },
  } satisfies PeeringDeps;
  const controllers = [
    createVirtualNodeCreatorController,
    createIdentityController,
    createSliceIdentityController,
    createLocalRenewController,
  ];
  const running = Promise.all(controllers.map((one) => one(peering).run(stop.signal)));
  return {
    world,
    create,
    async stop() {
      stop.abort();
      await running;
      await agent.stop();
      await world.stop();
    },
  };
}
