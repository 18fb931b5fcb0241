/** What `join` and `leave` have to know of a cluster before they change it. */
import type { KubeClient } from '#cli/cluster/open.ts';
import { configMaps, deployments, nodes } from '#shared/domain/core-kinds.ts';
import { type CredentialSetting, credentialVariable, isCredentialSetting } from '#shared/domain/credential-setting.ts';
import { clusterIdConfigMap, systemNamespace } from '#shared/domain/liqo-keys.ts';
import type { NodeProcess } from '#shared/domain/network-keys.ts';
import { isVirtualNode } from '#shared/domain/virtual-nodes.ts';
import { AppError, codeOf } from '#shared/errors/app-error.ts';
import { type BrokerLink, brokerLinks } from '#shared/schema/isthmus/broker-link.ts';
import { nodeProcessOf } from './arrangement.ts';
import { callersLabel, callersOf, networkPolicies } from './caller-manifests.ts';
import { agentName, joinStampAnnotation, profileAnnotation } from './manifests.ts';
import { accessEnv, type MetricsAccess, metricsAccess } from './metrics-manifests.ts';

export interface ClusterState {
  /** Undefined: nothing of ours is installed. */
  readonly clusterId?: string;
  readonly link?: BrokerLink;
  readonly joinStamp?: string;
  readonly image?: string;
  /** Of the agent that is installed. */
  readonly nodeProcess?: NodeProcess;
  /** Absent: its metrics are not served. */
  readonly metrics?: MetricsAccess;
  /** The distribution that a person named when it was installed. */
  readonly profile?: string;
  readonly credentials?: CredentialSetting;
  /** Empty: the webhooks are open to all. */
  readonly webhookCallers: readonly string[];
  readonly schedulableNodes: number;
  /** Names of those that are not virtual. */
  readonly nodes: readonly string[];
}

export async function readCluster(kube: KubeClient): Promise<ClusterState> {
  const within = { namespace: systemNamespace };
  const [idMap, agent, liqo, link, realNodes, callers] = await Promise.all([
    kube.get(configMaps, { ...within, name: clusterIdConfigMap }),
    kube.get(deployments, { ...within, name: agentName }),
    kube.get(deployments, { ...within, name: 'liqo-controller-manager' }),
    // Absent together with its CRD before the first join.
    kube.get(brokerLinks, { name: 'broker' }),
    kube.collect(nodes, (node) =>
      isVirtualNode(node) ? undefined : { name: node.metadata.name, isClosed: node.spec?.unschedulable === true },
    ),
    orUndefined(kube.list(networkPolicies, callersLabel, systemNamespace), 'kube_forbidden'),
  ]);
  if (liqo !== undefined) {
    throw new AppError(
      'in_use',
      `Liqo itself is installed in this cluster (Deployment ${systemNamespace}/liqo-controller-manager)`,
      {
        detail: { remedy: 'Isthmus replaces Liqo and never runs beside it: run `liqoctl uninstall` first' },
      },
    );
  }
  const template = agent?.spec?.template;
  const clusterId = idMap?.data?.CLUSTER_ID;
  const joinStamp = template?.metadata?.annotations?.[joinStampAnnotation];
  const profile = agent?.metadata.annotations?.[profileAnnotation];
  const { image, args, env = [] } = template?.spec?.containers?.[0] ?? {};
  const credentials = env?.find(({ name }) => name === credentialVariable)?.value;
  return {
    ...(isCredentialSetting(credentials) && { credentials }),
    ...(clusterId !== undefined && { clusterId }),
    ...(link !== undefined && { link }),
    ...(joinStamp !== undefined && { joinStamp }),
    ...(image !== undefined && { image }),
    ...(profile !== undefined && { profile }),
    ...(args !== undefined && { nodeProcess: nodeProcessOf(args) }),
    ...metricsOf(env),
    webhookCallers: callersOf(callers ?? []),
    nodes: realNodes.map(({ name }) => name),
    schedulableNodes: realNodes.filter(({ isClosed }) => !isClosed).length,
  };
}

function metricsOf(env: readonly { readonly name: string; readonly value?: string }[]): Pick<ClusterState, 'metrics'> {
  const value = env.find(({ name }) => name === accessEnv)?.value;
  const metrics = metricsAccess.find((one) => one === value);
  return metrics === undefined ? {} : { metrics };
}

export const orUndefined = async <T>(promise: Promise<T>, code: string): Promise<T | undefined> =>
  promise.catch((error: unknown) => {
    if (codeOf(error) === code) return undefined;
    throw error;
  });
