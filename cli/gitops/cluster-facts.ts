/** What one side of a peering has to know of the other, read from a cluster in which the agent is installed. */
import type { KubeClient } from '#cli/cluster/open.ts';
import { controllerSelector } from '#cli/install/manifests.ts';
import { configMaps, type Deployment, deployments, nodes } from '#shared/domain/core-kinds.ts';
import type { Node } from '#shared/domain/kube-object.ts';
import { clusterIdConfigMap, systemNamespace } from '#shared/domain/liqo-keys.ts';
import { networkLabel, networkType } from '#shared/domain/network-keys.ts';
import { isVirtualNode } from '#shared/domain/virtual-nodes.ts';
import { AppError } from '#shared/errors/app-error.ts';
import type { Network } from '#shared/schema/liqo/network.ts';
import { networkKinds } from '#shared/schema/liqo/network-resources.ts';

export interface ClusterFacts {
  readonly id: string;
  /** As peers reach it. */
  readonly apiServer: string;
  /** PEM; absent when its certificate is publicly trusted. */
  readonly ca?: string;
  readonly podCidrs: readonly string[];
  /** Empty: no network is installed. */
  readonly externalCidrs: readonly string[];
  /** External addresses of its nodes where they have some, else internal ones. */
  readonly nodeAddresses: readonly string[];
}

const flag = '--api-server-address-override=';

/** Fails with `not_found` when there is no agent; `role` names the cluster in messages. */
export async function readClusterFacts(kube: KubeClient, role: string): Promise<ClusterFacts> {
  const within = { namespace: systemNamespace };
  const [map, managers, networks, rootCa, allNodes] = await Promise.all([
    kube.get(configMaps, { ...within, name: clusterIdConfigMap }),
    kube.list(deployments, controllerSelector),
    kube.list(networkKinds.networks),
    kube.get(configMaps, { ...within, name: 'kube-root-ca.crt' }),
    kube.list(nodes),
  ]);
  const id = map?.data?.CLUSTER_ID;
  if (id === undefined) {
    throw new AppError('not_found', `nothing is installed in the ${role} cluster (${kube.server})`, {
      detail: { field: role, remedy: `install it: isthmus install --kubeconfig FILE --cluster-id ID` },
    });
  }
  const ca = rootCa?.data?.['ca.crt'];
  return {
    id,
    apiServer: apiServerOf(managers as Deployment[]) ?? kube.server,
    ...(ca === undefined ? {} : { ca }),
    podCidrs: rangesOf(networks, networkType.pod),
    externalCidrs: rangesOf(networks, networkType.external),
    nodeAddresses: addressesOf(allNodes as Node[]),
  };
}

const apiServerOf = (managers: readonly Deployment[]): string | undefined =>
  managers
    .flatMap(({ spec }) => spec?.template.spec?.containers ?? [])
    .flatMap(({ args = [] }) => args)
    .find((text) => text.startsWith(flag))
    ?.slice(flag.length);

const rangesOf = (networks: readonly Network[], type: string): string[] =>
  networks
    .filter(({ metadata }) => metadata.labels?.[networkLabel.networkType] === type)
    .flatMap(({ status }) => status?.cidr ?? [])
    .sort();

function addressesOf(all: readonly Node[]): string[] {
  const real = all.filter((node) => !isVirtualNode(node));
  const of = (wanted: string): string[] =>
    real.flatMap(({ status }) =>
      (status?.addresses ?? []).filter(({ type }) => type === wanted).map(({ address }) => address),
    );
  const external = of('ExternalIP');
  return external.length > 0 ? external : of('InternalIP');
}
