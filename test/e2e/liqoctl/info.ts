/** `liqoctl info`, `info peer` and `version` (reference/liqo-control-plane.md 3.12, 3.13, 3.16): what they read, and where the binary would crash. */
import { deployments, pods } from '#shared/domain/core-kinds.ts';
import { configurations } from '#shared/schema/liqo/configuration.ts';
import { type ForeignCluster, foreignClusters } from '#shared/schema/liqo/foreign-cluster.ts';
import { networkKinds } from '#shared/schema/liqo/network-resources.ts';
import { resourceSlices } from '#shared/schema/liqo/resource-slice.ts';
import { virtualNodes } from '#shared/schema/liqo/virtual-node.ts';
import { clusterIdOf, peerLabel, type Target, theOne } from './requests.ts';

export const managerLabels = 'app.kubernetes.io/name=controller-manager,app.kubernetes.io/component=controller-manager';
export const argument = (args: readonly string[], name: string): string | undefined =>
  args.find((text) => text.startsWith(`--${name}=`))?.slice(name.length + 3);

type Module = NonNullable<ForeignCluster['status']>['modules']['networking'];
const moduleStatus = (module: Module | undefined): 'Disabled' | 'Healthy' | 'Unhealthy' => {
  if (module?.enabled !== true) return 'Disabled';
  const isWell = (module.conditions ?? []).every(({ status }) => status === 'Established' || status === 'Ready');
  return isWell ? 'Healthy' : 'Unhealthy';
};

export async function info(target: Target) {
  const { api, liqoNamespace } = target;
  const manager = await theOne(api, deployments, liqoNamespace, managerLabels);
  const container = manager?.spec?.template.spec?.containers.find(({ name }) => name === 'controller-manager');
  const args = container?.args ?? [];
  const cidrsOf = async (type: string) =>
    (
      await api.list(networkKinds.networks, {
        namespace: liqoNamespace,
        labelSelector: `ipam.liqo.io/network-type=${type}`,
      })
    ).map(({ status }) => status?.cidr);
  const all = await api.list(pods, { namespace: liqoNamespace });
  const unhealthy = all.filter(
    ({ status }) => !status?.conditions?.some(({ type, status: is }) => type === 'Ready' && is === 'True'),
  );
  return {
    local: {
      clusterID: await clusterIdOf(target),
      version: container?.image?.split(':').at(-1),
      labels: argument(args, 'cluster-labels'),
      APIServerAddr: argument(args, 'api-server-address-override'),
    },
    health: { healthy: unhealthy.length === 0, unhealthyPods: unhealthy.map(({ metadata }) => metadata.name) },
    network: {
      podCIDRs: await cidrsOf('pod-cidr'),
      serviceCIDR: (await cidrsOf('service-cidr'))[0],
      externalCIDR: (await cidrsOf('external-cidr'))[0],
      internalCIDR: (await cidrsOf('internal-cidr'))[0],
    },
    peerings: (await api.list(foreignClusters)).map(({ spec, status }) => ({
      clusterID: spec.clusterID,
      role: status?.role,
      networkingStatus: moduleStatus(status?.modules.networking),
      authenticationStatus: moduleStatus(status?.modules.authentication),
      offloadingStatus: moduleStatus(status?.modules.offloading),
    })),
  };
}

export async function infoPeer({ api }: Target, id: string) {
  const selector = { labelSelector: `${peerLabel}=${id}` };
  const foreign = await theOne(api, foreignClusters, undefined, `${peerLabel}=${id}`);
  if (foreign === undefined) throw new Error(`ForeignCluster ${id} not found`);
  const { status } = foreign;
  const configuration = (await api.list(configurations, selector))[0];
  if (status?.modules.networking.enabled === true && configuration?.status?.remote === undefined)
    throw new Error('liqoctl would crash: Configuration without status.remote');
  const [servers, clients] = await Promise.all([
    api.list(networkKinds.gatewayServers, selector),
    api.list(networkKinds.gatewayClients, selector),
  ]);
  const slices = await api.list(resourceSlices, selector);
  const nodes = await api.list(virtualNodes, selector);
  return {
    info: { clusterID: id, role: status?.role },
    network: {
      status: moduleStatus(status?.modules.networking),
      CIDRs: { remote: configuration?.spec.remote.cidr, remapped: configuration?.status?.remote?.cidr },
      // The role is that of the peer.
      gateway: { role: clients.length > 0 ? 'Server' : 'Client', both: servers.length + clients.length },
    },
    authentication: {
      status: moduleStatus(status?.modules.authentication),
      APIServerAddr: status?.role === 'Provider' ? (status.foreignProxyUrl ?? status.apiServerUrl) : undefined,
      resourceSlices: slices.map(({ metadata, status: of }) => ({
        name: metadata.name,
        action: metadata.labels?.['liqo.io/replicated'] === 'true' ? 'Providing' : 'Consuming',
        accepted:
          (of?.conditions?.length ?? 0) > 0 && (of?.conditions ?? []).every(({ status: is }) => is === 'Accepted'),
        resources: of?.resources,
      })),
    },
    offloading: { virtualNodes: nodes.map(({ metadata }) => metadata.name) },
  };
}

/** What `liqoctl version` prints as that of the server. */
export async function version({ api, liqoNamespace }: Target): Promise<string | undefined> {
  const manager = await theOne(api, deployments, liqoNamespace, managerLabels);
  const container = manager?.spec?.template.spec?.containers.find(({ name }) => name === 'controller-manager');
  return container?.image?.split(':').at(-1);
}
