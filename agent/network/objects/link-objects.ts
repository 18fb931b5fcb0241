/** Brings together the objects of each link: gateway, ranges, overlay, key, pods. They are found by namespace and remote cluster ID. */
import { type KubeObject, keyOf, type Node, type Pod } from '#shared/domain/kube-object.ts';
import { label } from '#shared/domain/liqo-keys.ts';
import { defaultMtu, isthmusNetworkAnnotation, networkLabel, networkName } from '#shared/domain/network-keys.ts';
import type { Configuration } from '#shared/schema/liqo/configuration.ts';
import type { GatewayClient } from '#shared/schema/liqo/gateway-client.ts';
import type { GatewayServer } from '#shared/schema/liqo/gateway-server.ts';
import type { InternalFabric } from '#shared/schema/liqo/internal-fabric.ts';
import type { PublicKey } from '#shared/schema/liqo/public-key.ts';
import type { NodeAgentObjects } from './objects.ts';
import { compareText } from './user-targets.ts';

export interface Link {
  /** namespace/name of the gateway. */
  readonly name: string;
  readonly namespace: string;
  readonly gatewayName: string;
  readonly remoteClusterId: string;
  readonly role: 'server' | 'client';
  readonly gateway: GatewayServer | GatewayClient;
  readonly configuration?: Configuration;
  readonly publicKey?: PublicKey;
  readonly fabric?: LinkFabric;
  /** Of this side's Service: leads to the active pod once the cluster's proxy has programmed it. */
  readonly nodePort?: number;
  /** That have an address and have not ended, the active one first, then the younger ones. */
  readonly pods: readonly GatewayPod[];
}

interface LinkFabric {
  readonly overlayAddress: string;
  readonly vni: number;
  readonly remoteCidrs: readonly string[];
  /** In effect. */
  readonly mtu: number;
  readonly object: InternalFabric;
}

export interface GatewayPod {
  readonly name: string;
  readonly namespace: string;
  readonly uid: string;
  readonly ip: string;
  readonly node: string;
  readonly active: boolean;
  readonly terminating: boolean;
  readonly createdAt: string;
}

/** Each ping asks for its link. */
const known = new WeakMap<NodeAgentObjects, readonly Link[]>();

/** In order of their names. Of two gateways for one peer, which admission refuses, the older one counts. */
export function linksOf(objects: NodeAgentObjects): readonly Link[] {
  const links = known.get(objects) ?? linksIn(objects);
  known.set(objects, links);
  return links;
}

function linksIn(objects: NodeAgentObjects): readonly Link[] {
  const gateways = [
    ...objects.gatewayServers.map((gateway) => ({ role: 'server' as const, gateway })),
    ...objects.gatewayClients.map((gateway) => ({ role: 'client' as const, gateway })),
  ].sort((a, b) => oldest(a.gateway, b.gateway) || compareText(a.role, b.role));
  const seen = new Set<string>();
  const links: Link[] = [];
  for (const { role, gateway } of gateways) {
    const remoteClusterId = gateway.metadata.labels?.[label.remoteClusterId];
    const { namespace = '', name: gatewayName } = gateway.metadata;
    if (remoteClusterId === undefined || gateway.metadata.deletionTimestamp !== undefined) continue;
    const pair = `${namespace}/${remoteClusterId}`;
    if (seen.has(pair)) continue;
    seen.add(pair);
    const ofPeer = <T extends KubeObject>(all: readonly T[]): T | undefined =>
      all
        .filter(
          ({ metadata }) =>
            metadata.namespace === namespace &&
            metadata.labels?.[label.remoteClusterId] === remoteClusterId &&
            metadata.deletionTimestamp === undefined,
        )
        .sort(oldest)[0];
    const configuration = ofPeer(objects.configurations);
    const publicKey = ofPeer(objects.publicKeys);
    const fabric = fabricOf(ofPeer(objects.internalFabrics), gateway);
    const nodePort = nodePortOf(gateway);
    links.push({
      name: keyOf(gateway),
      namespace,
      gatewayName,
      remoteClusterId,
      role,
      gateway,
      pods: podsOf(gateway, objects.gatewayPods),
      ...(configuration === undefined ? {} : { configuration }),
      ...(publicKey === undefined ? {} : { publicKey }),
      ...(fabric === undefined ? {} : { fabric }),
      ...(nodePort === undefined ? {} : { nodePort }),
    });
  }
  return links.sort((a, b) => compareText(a.name, b.name));
}

/** What the gateway is to have at most; the path may let less through. */
export const configuredMtu = (gateway: GatewayServer | GatewayClient): number => gateway.spec.mtu ?? defaultMtu;

function nodePortOf({ metadata }: KubeObject): number | undefined {
  const port = Number(metadata.annotations?.[isthmusNetworkAnnotation.nodePort] ?? Number.NaN);
  return Number.isInteger(port) && port > 0 && port < 2 ** 16 ? port : undefined;
}

/** Undefined until the controller has granted the tunnel id. */
function fabricOf(object: InternalFabric | undefined, gateway: GatewayServer | GatewayClient): LinkFabric | undefined {
  const vni = Number(object?.metadata.annotations?.[isthmusNetworkAnnotation.vni] ?? Number.NaN);
  if (object === undefined || !Number.isInteger(vni) || vni < 1 || vni >= 2 ** 24) return undefined;
  const remoteCidrs = [...new Set(object.spec.remoteCIDRs ?? [])].sort(compareText);
  const mtu = Math.min(configuredMtu(gateway), object.spec.mtu ?? Number.POSITIVE_INFINITY);
  return { overlayAddress: object.spec.interface.gateway.ip, vni, remoteCidrs, mtu, object };
}

function podsOf(gateway: KubeObject, pods: readonly Pod[]): readonly GatewayPod[] {
  const { namespace, name } = gateway.metadata;
  const rank = (pod: GatewayPod): number => (pod.active ? 0 : 2) + (pod.terminating ? 1 : 0);
  return (
    pods
      .filter((pod) => pod.metadata.namespace === namespace && gatewayNameOf(pod) === name)
      .flatMap(readGatewayPod)
      // While the role moves two are labelled: the younger one is where it moves to.
      .sort((a, b) => rank(a) - rank(b) || compareText(b.createdAt, a.createdAt) || compareText(a.name, b.name))
  );
}

/** By label; pods of a template without that label by the name of their Deployment. */
const gatewayNameOf = ({ metadata }: Pod): string | undefined =>
  metadata.labels?.[networkLabel.gatewayName] ??
  /^gw-(.+)-[a-z0-9]{1,10}-[a-z0-9]{5}$/.exec(metadata.name)?.[1] ??
  (metadata.name.startsWith(networkName.gateway('')) ? metadata.name.slice(3) : undefined);

function readGatewayPod({ metadata, spec, status }: Pod): readonly GatewayPod[] {
  const { podIP, phase } = status ?? {};
  if (!podIP || !spec?.nodeName || phase === 'Failed' || phase === 'Succeeded') return [];
  return [
    {
      name: metadata.name,
      namespace: metadata.namespace ?? '',
      uid: metadata.uid ?? '',
      ip: podIP,
      node: spec.nodeName,
      active: metadata.labels?.[networkLabel.active] === 'true',
      terminating: metadata.deletionTimestamp !== undefined,
      createdAt: metadata.creationTimestamp ?? '',
    },
  ];
}

export const activePod = ({ pods }: Link): GatewayPod | undefined => pods.find(({ active }) => active);

export const internalAddresses = (node: Node | undefined): readonly string[] =>
  (node?.status?.addresses ?? [])
    .filter(({ type, address }) => type === 'InternalIP' && !address.includes(':'))
    .map(({ address }) => address);

export const isVirtual = ({ metadata }: Node): boolean => metadata.labels?.[label.type] === 'virtual-node';

function oldest(a: KubeObject, b: KubeObject): number {
  const age = ({ metadata }: KubeObject): string => metadata.creationTimestamp ?? '';
  return compareText(age(a), age(b)) || compareText(keyOf(a), keyOf(b));
}
