/** `liqoctl info`, `info peer` and `version` (docs/design/control-plane.md#what-does-liqoctl-need): what they read, and where the binary would crash. */
import { deployments, pods } from '#shared/domain/core-kinds.ts';
import { configurations } from '#shared/schema/liqo/configuration.ts';
import { type ForeignCluster, foreignClusters } from '#shared/schema/liqo/foreign-cluster.ts';
import { identities } from '#shared/schema/liqo/identity.ts';
import { networkKinds } from '#shared/schema/liqo/network-resources.ts';
import { resourceSlices } from '#shared/schema/liqo/resource-slice.ts';
import { type VirtualNode, virtualNodes } from '#shared/schema/liqo/virtual-node.ts';
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
  // In all namespaces: what peers are given must not be labelled as what the cluster has.
  const cidrsOf = async (type: string) =>
    (await api.list(networkKinds.networks, { labelSelector: `ipam.liqo.io/network-type=${type}` })).map(
      ({ status }) => status?.cidr,
    );
  const cidrOf = async (type: string) => {
    const found = await cidrsOf(type);
    if (found.length !== 1) throw new Error(`${found.length} Networks are labelled ${type}`);
    return found[0];
  };
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
      serviceCIDR: await cidrOf('service-cidr'),
      externalCIDR: await cidrOf('external-cidr'),
      internalCIDR: await cidrOf('internal-cidr'),
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

const wellNodes: readonly string[] = ['Running', 'None'];

function virtualNodeOf({ metadata, spec, status }: VirtualNode) {
  const conditions = status?.conditions ?? [];
  const isWell = conditions.length > 0 && conditions.every((one) => wellNodes.includes(one.status));
  return {
    name: metadata.name,
    status: isWell ? 'Healthy' : 'Unhealthy',
    secret: spec.kubeconfigSecretRef?.name ?? '',
    resourceSlice: metadata.labels?.['liqo.io/resourceslice-name'],
    resources: spec.resourceQuota?.hard,
  };
}

/** `warnings`: printed above what could be collected. */
export async function infoPeer({ api }: Target, id: string) {
  const labelSelector = `${peerLabel}=${id}`;
  const foreign = await theOne(api, foreignClusters, undefined, labelSelector);
  if (foreign === undefined) throw new Error(`ForeignCluster ${id} not found`);
  const { status } = foreign;
  const warnings: string[] = [];
  const network = moduleStatus(status?.modules.networking);
  const isLinked = network !== 'Disabled';
  const configuration = isLinked ? await theOne(api, configurations, undefined, labelSelector) : undefined;
  if (isLinked && configuration === undefined) warnings.push('no network configuration');
  if (configuration !== undefined && configuration.status?.remote === undefined)
    throw new Error('liqoctl would crash: Configuration without status.remote');
  const [server, client] = [
    await theOne(api, networkKinds.gatewayServers, undefined, labelSelector),
    await theOne(api, networkKinds.gatewayClients, undefined, labelSelector),
  ];
  const gateways = (server === undefined ? 0 : 1) + (client === undefined ? 0 : 1);
  if (isLinked && gateways !== 1) warnings.push(`${gateways} gateways`);
  const { addresses, port } = (client === undefined ? server?.status?.endpoint : client.spec.endpoint) ?? {};
  const authentication = moduleStatus(status?.modules.authentication);
  const identity = (await api.list(identities, { labelSelector })).find(({ spec }) => spec.type === 'ControlPlane');
  const showsAddress = authentication !== 'Disabled' && status?.role === 'Provider';
  if (showsAddress && identity === undefined) warnings.push('no address of the API server');
  const { proxyURL, apiServer } = identity?.spec.authParams ?? {};
  const slices = await api.list(resourceSlices, { labelSelector });
  const nodes = await api.list(virtualNodes, { labelSelector });
  return {
    warnings,
    info: { clusterID: id, role: status?.role },
    network: {
      status: network,
      CIDRs: { remote: configuration?.spec.remote.cidr, remapped: configuration?.status?.remote?.cidr },
      // The role is that of the peer.
      gateway: { role: client === undefined ? 'Client' : 'Server', address: addresses, port, both: gateways },
    },
    authentication: {
      status: authentication,
      APIServerAddr: showsAddress ? (proxyURL ?? apiServer) : undefined,
      resourceSlices: slices.map(({ metadata, status: of }) => ({
        name: metadata.name,
        action: metadata.labels?.['liqo.io/replicated'] === 'true' ? 'Providing' : 'Consuming',
        accepted:
          (of?.conditions?.length ?? 0) > 0 && (of?.conditions ?? []).every(({ status: is }) => is === 'Accepted'),
        resources: of?.resources,
      })),
    },
    offloading: { status: moduleStatus(status?.modules.offloading), virtualNodes: nodes.map(virtualNodeOf) },
  };
}

/** What `liqoctl version` prints as that of the server. */
export async function version({ api, liqoNamespace }: Target): Promise<string | undefined> {
  const manager = await theOne(api, deployments, liqoNamespace, managerLabels);
  const container = manager?.spec?.template.spec?.containers.find(({ name }) => name === 'controller-manager');
  return container?.image?.split(':').at(-1);
}
