/** What one cluster knows of its link to the other: read once when the test begins and once more when something failed. */
import type { KubeClient } from '#cli/cluster/open.ts';
import { fullMasqueradeEnv } from '#cli/install/arrangement.ts';
import { agentName } from '#cli/install/manifests.ts';
import { configMaps, daemonSets, deployments, nodes, pods } from '#shared/domain/core-kinds.ts';
import type { KubeObject, Node, ResourceType } from '#shared/domain/kube-object.ts';
import { clusterIdConfigMap, label, systemNamespace } from '#shared/domain/liqo-keys.ts';
import {
  defaultMtu,
  fabricName,
  networkCidrsConfigured,
  networkLabel,
  networkName,
  nodeProcessLabel,
} from '#shared/domain/network-keys.ts';
import { isVirtualNode } from '#shared/domain/virtual-nodes.ts';
import { AppError } from '#shared/errors/app-error.ts';
import type { HostCondition } from '#shared/schema/liqo/host-conditions.ts';
import { networkKinds } from '#shared/schema/liqo/network-resources.ts';

/** Real ranges of the peer, and what this cluster calls them. */
interface RangeView {
  readonly real: string;
  readonly view: string;
}

export interface ConnectionFacts {
  readonly value: string;
  readonly mtu?: number;
  readonly handshakeAt?: number;
}

interface NodeFacts {
  readonly name: string;
  readonly address: string;
  readonly ready: boolean;
  /** Node process is there and ready. */
  readonly process: boolean;
  /** Has an address on the overlay. */
  readonly overlay: boolean;
  /** By which peers see the node's own traffic, real to this cluster. */
  readonly exposed?: string;
}

export interface Side {
  readonly cluster: string;
  readonly peer: string;
  /** Image tag of Liqo's own controller manager: this cluster runs Liqo, not Isthmus. */
  readonly liqo?: string;
  /** Of the agent; test pods run it too. */
  readonly image?: string;
  readonly fullMasquerade: 'true' | 'false' | 'auto';
  /** Undefined: no Configuration for the peer. */
  readonly ranges?: { readonly configured: boolean; readonly message?: string; readonly views: readonly RangeView[] };
  /** Undefined: no GatewayServer or GatewayClient for the peer. */
  readonly gateway?: { readonly name: string; readonly problem?: string };
  /** Undefined: no InternalFabric yet. `address`: overlay address of the gateway. */
  readonly fabric?: { readonly address: string; readonly mtu: number };
  /** Node of the active gateway pod. */
  readonly activeNode?: string;
  readonly gatewayPods: number;
  readonly connection?: ConnectionFacts;
  /** User-written firewalls and routes that a host could not apply. */
  readonly hostErrors: readonly { readonly host: string; readonly what: string; readonly message: string }[];
  /** That are no virtual nodes, by name. */
  readonly nodes: readonly NodeFacts[];
}

export const liqoManagerName = 'liqo-controller-manager';

/** Undefined: an agent of Isthmus is there, or nothing of Liqo is. */
async function liqoVersion(kube: KubeClient): Promise<string | undefined> {
  const [agent, manager] = await Promise.all(
    [agentName, liqoManagerName].map((name) => kube.get(deployments, { namespace: systemNamespace, name })),
  );
  if (agent !== undefined || manager === undefined) return undefined;
  const image = manager.spec?.template?.spec?.containers?.[0]?.image ?? '';
  return /:([^/:@]+)(?:@.*)?$/.exec(image)?.[1] ?? 'of an unknown version';
}

export async function readSide(kube: KubeClient, cluster: string, peer: string): Promise<Side> {
  const within = { namespace: systemNamespace };
  const ofPeer = async <T extends KubeObject>(type: ResourceType<T>): Promise<T | undefined> =>
    (await kube.list(type, `${label.remoteClusterId}=${peer}`)).filter((o) => !o.metadata.deletionTimestamp)[0];
  const [daemonSet, configuration, server, client, fabric, allPods, allNodes, internal, ips] = await Promise.all([
    kube.get(daemonSets, { ...within, name: fabricName }),
    ofPeer(networkKinds.configurations),
    ofPeer(networkKinds.gatewayServers),
    ofPeer(networkKinds.gatewayClients),
    ofPeer(networkKinds.internalFabrics),
    kube.list(pods, `${networkLabel.component}=gateway`),
    kube.list(nodes),
    kube.list(networkKinds.internalNodes),
    kube.list(networkKinds.ips),
  ]);
  const liqo = await liqoVersion(kube);
  const processes = await kube.list(pods, nodeProcessLabel, systemNamespace);
  const gateway = server ?? client;
  const namespace = gateway?.metadata.namespace;
  const connection =
    gateway && namespace
      ? await kube.get(networkKinds.connections, { namespace, name: networkName.gateway(gateway.metadata.name) })
      : undefined;
  const gatewayPods = allPods.filter((pod) => pod.metadata.namespace === namespace && namespace !== undefined);
  const active = gatewayPods.find(({ metadata }) => metadata.labels?.[networkLabel.active] === 'true');
  const ready = gateway?.status?.conditions?.find(({ type }) => type === 'Ready');
  const container = daemonSet?.spec?.template?.spec?.containers?.[0];
  const isReady = (conditions: readonly { type: string; status: string }[] | undefined): boolean =>
    conditions?.some(({ type, status }) => type === 'Ready' && status === 'True') ?? false;

  return {
    cluster,
    peer,
    gatewayPods: gatewayPods.length,
    fullMasquerade: masqueradeOf(container?.env?.find(({ name }) => name === fullMasqueradeEnv)?.value),
    hostErrors: await hostErrors(kube),
    ...(liqo !== undefined && { liqo }),
    ...(container?.image !== undefined && { image: container.image }),
    ...(configuration && {
      ranges: {
        ...configuredOf(configuration),
        views: (['pod', 'external'] as const).flatMap((type) =>
          configuration.spec.remote.cidr[type].flatMap((real, i) => {
            const view = configuration.status?.remote?.cidr[type][i];
            return view === undefined ? [] : [{ real, view }];
          }),
        ),
      },
    }),
    ...(gateway && {
      gateway: {
        name: gateway.metadata.name,
        ...(ready?.status === 'False' && { problem: `${ready.reason}: ${ready.message}` }),
      },
    }),
    ...(fabric && { fabric: { address: fabric.spec.interface.gateway.ip, mtu: fabric.spec.mtu ?? defaultMtu } }),
    ...(active?.spec?.nodeName !== undefined && { activeNode: active.spec.nodeName }),
    ...(connection && { connection: connectionFacts(connection.status ?? {}) }),
    nodes: allNodes
      .filter((node) => !isVirtualNode(node))
      .map((node) => {
        const { name } = node.metadata;
        const exposed = ips.find(
          ({ metadata }) => metadata.name === networkName.nodeIp(name) && metadata.namespace === systemNamespace,
        )?.status?.ip;
        return {
          name,
          address: addressOf(node),
          ready: isReady(node.status?.conditions),
          process: processes.some(({ spec, status }) => spec?.nodeName === name && isReady(status?.conditions)),
          overlay: internal.some(({ metadata }) => metadata.name === name),
          ...(exposed !== undefined && { exposed }),
        };
      })
      .sort((a, b) => (a.name < b.name ? -1 : 1)),
  };
}

const masqueradeOf = (value: string | undefined): Side['fullMasquerade'] =>
  value === 'true' || value === 'false' ? value : 'auto';

const addressOf = ({ status }: Node): string =>
  status?.addresses?.find(({ type, address }) => type === 'InternalIP' && !address.includes(':'))?.address ?? '';

interface Configured {
  readonly metadata: { readonly generation?: number };
  readonly status?: {
    readonly conditions?:
      | readonly {
          readonly type: string;
          readonly status: string;
          readonly message?: string | undefined;
          readonly observedGeneration?: number | undefined;
        }[]
      | undefined;
  };
}

function configuredOf({ metadata, status }: Configured): { readonly configured: boolean; readonly message?: string } {
  const condition = status?.conditions?.find(({ type }) => type === networkCidrsConfigured);
  const current = condition?.observedGeneration === undefined || condition.observedGeneration === metadata.generation;
  return {
    configured: condition?.status === 'True' && current,
    ...(condition?.message && { message: condition.message }),
  };
}

const connectionFacts = (status: {
  readonly value?: string | undefined;
  readonly mtu?: number | undefined;
  readonly lastHandshakeTime?: string | undefined;
}): ConnectionFacts => ({
  value: status.value ?? 'Connecting',
  ...(status.mtu !== undefined && { mtu: status.mtu }),
  ...(status.lastHandshakeTime && { handshakeAt: Date.parse(status.lastHandshakeTime) }),
});

async function hostErrors(kube: KubeClient): Promise<Side['hostErrors']> {
  const [firewalls, routes] = await Promise.all([
    kube.list(networkKinds.firewallConfigurations),
    kube.list(networkKinds.routeConfigurations),
  ]);
  return [...firewalls, ...routes].flatMap((object) =>
    ((object.status?.conditions ?? []) as readonly HostCondition[])
      .filter(({ type, status }) => type === 'Error' && status === 'True')
      .map(({ host, message }) => ({
        host,
        what: `${object.kind} ${object.metadata.namespace}/${object.metadata.name}`,
        message: message ?? 'not applied',
      })),
  );
}

/** So that two swapped kubeconfigs are no riddle. */
export async function mustBeCluster(kube: KubeClient, name: string, option: string): Promise<void> {
  const map = await kube.get(configMaps, { namespace: systemNamespace, name: clusterIdConfigMap });
  const actual = map?.data?.CLUSTER_ID;
  if (actual === name) return;
  const is = actual === undefined ? 'a cluster in which Isthmus is not installed' : `cluster ${actual}`;
  throw new AppError('invalid_input', `${option} is the kubeconfig of ${is}, not of ${name}`, {
    detail: {
      field: option,
      value: actual ?? '',
      remedy: `name the kubeconfig of ${name}; consumer first, then provider`,
    },
  });
}
