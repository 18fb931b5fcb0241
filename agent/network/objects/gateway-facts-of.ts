/** Objects to what one gateway pod of this node has to know. Any order of the objects gives the same model. */
import { parseAddress, parseCidr } from '#shared/domain/cidr.ts';
import type { Node } from '#shared/domain/kube-object.ts';
import { networkLabel, networkPort, networkType } from '#shared/domain/network-keys.ts';
import type { WireGuardPeer } from '../kernel/kernel-state.ts';
import type { GatewayModel, GatewayNode, GatewayWireGuard, Sibling } from '../plan/gateway-model.ts';
import { isVirtual, type Link, linksOf } from './link-objects.ts';
import { type LinkSizes, sizeOf } from './link-sizes.ts';
import { type Exposure, exposures, nodeSources } from './node-facts-of.ts';
import type { NodeAgentObjects, PodAddress } from './objects.ts';
import { ownRanges, podRanges, viewsOf } from './ranges.ts';
import { compareText, firewallsFor, routesFor } from './user-targets.ts';

export interface GatewayContext {
  /** namespace/name of the gateway. */
  readonly link: string;
  /** That runs the pod. */
  readonly node: string;
  readonly implementation: 'kernel' | 'userspace';
  readonly privateKeyFile: string;
  /** The active replica: it keeps the path to the peer open. */
  readonly active: boolean;
  /** Of a client that dials from another port than its own. */
  readonly sourcePort?: number;
  readonly sizes?: LinkSizes;
}

export type GatewayModelOutcome =
  | { readonly ok: true; readonly model: GatewayModel }
  /** In words: what has to appear first. */
  | { readonly ok: false; readonly waitingFor: string };

const waiting = (waitingFor: string): GatewayModelOutcome => ({ ok: false, waitingFor });

/** Keeps mappings of NAT boxes alive, and makes an active replica shake hands without being asked. */
export const keepaliveSeconds = 5;

/** The peer comes without endpoint: dialling is the business of `agent/network/link/tunnel`. */
export function gatewayModelOf(objects: NodeAgentObjects, context: GatewayContext): GatewayModelOutcome {
  const links = linksOf(objects);
  const link = links.find(({ name }) => name === context.link);
  if (link === undefined) return waiting('a GatewayServer or GatewayClient');
  const { fabric, configuration, remoteClusterId } = link;
  if (configuration === undefined) return waiting('a Configuration of the peer');
  if (fabric === undefined) return waiting('an InternalFabric with a tunnel id');
  const remote = viewsOf(configuration);
  if (remote.pods.length === 0) return waiting("the Configuration's status");
  const [external] = ownRanges(objects.networks, networkType.external);
  if (external === undefined) return waiting('the Network of the external CIDR');
  const siblings = links.filter((other) => other.name !== link.name).flatMap(siblingOf);
  const nodes = nodesOf(objects, context.node);
  const reachable = reachableExposures(objects);
  const of = { is: 'gateway', node: context.node, remoteClusterId } as const;
  return {
    ok: true,
    model: {
      link: link.name,
      role: link.role,
      mtu: sizeOf(link, fabric.mtu, context.sizes),
      local: { pods: podRanges(objects.networks), external },
      remote,
      overlay: { address: fabric.overlayAddress, vni: fabric.vni },
      nodes,
      strayPods: strayPods(objects.pods, nodes),
      exposed: reachable.map(({ host, exposed }) => ({ ip: host, exposed })),
      hosts: hostsAmong(reachable, nodes, [
        ...podRanges(objects.networks),
        ...fabric.remoteCidrs,
        ...siblings.flatMap(({ remoteCidrs }) => remoteCidrs),
      ]),
      siblings,
      wireGuard: wireGuardOf(link, context),
      firewalls: firewallsFor(of, objects.firewalls),
      routes: routesFor(of, objects.routes),
    },
  };
}

function wireGuardOf(link: Link, context: GatewayContext): GatewayWireGuard {
  const { implementation, privateKeyFile, active, sourcePort } = context;
  const publicKey = link.publicKey?.spec.publicKey;
  const peer: WireGuardPeer | undefined =
    publicKey === undefined ? undefined : { publicKey, ...(active ? { keepaliveSeconds } : {}) };
  const listenPort = sourcePort ?? listenPortOf(link);
  return { implementation, listenPort, privateKeyFile, ...(peer === undefined ? {} : { peer }) };
}

/** A client listens on a fixed port, too: behind a NAT that keeps ports, its peer then knows where to dial. */
function listenPortOf({ role, gateway }: Pick<Link, 'role' | 'gateway'>): number {
  if (role === 'client') return networkPort.wireGuard;
  const endpoint = gateway.spec.endpoint;
  return endpoint?.port ?? endpoint?.ports?.[0] ?? networkPort.wireGuard;
}

/** Nodes that are on the overlay and have an address there to send to. */
function nodesOf(objects: NodeAgentObjects, own: string): readonly GatewayNode[] {
  return objects.internalNodes
    .filter(({ metadata }) => metadata.deletionTimestamp === undefined)
    .flatMap((internal): GatewayNode[] => {
      const { name } = internal.metadata;
      const node = objects.nodes.find(({ metadata }) => metadata.name === name);
      const { local, remote } = internal.status?.nodeIP ?? {};
      const sources = nodeSources(name, objects);
      const underlayAddress = (name === own ? local || remote : remote || local) || sources[0];
      if (node === undefined || isVirtual(node) || underlayAddress === undefined) return [];
      return [
        {
          name,
          overlayAddress: internal.spec.interface.node.ip,
          underlayAddress,
          sources,
          podCidrs: podCidrsOf(node),
          own: name === own,
        },
      ];
    })
    .sort((a, b) => compareText(a.name, b.name));
}

const podCidrsOf = ({ spec }: Node): readonly string[] =>
  (spec?.podCIDRs ?? (spec?.podCIDR ? [spec.podCIDR] : [])).filter((cidr) => parseCidr(cidr) !== undefined);

/** Those whose node would not be found by its range. */
function strayPods(pods: readonly PodAddress[], nodes: readonly GatewayNode[]): readonly PodAddress[] {
  const within = new Map(nodes.map(({ name, podCidrs }) => [name, memberOf(podCidrs)]));
  const kept = new Map<string, PodAddress>();
  for (const { ip, node } of [...pods].sort((a, b) => compareText(a.ip, b.ip) || compareText(a.node, b.node)))
    if (within.get(node)?.(ip) === false) kept.set(ip, { ip, node });
  return [...kept.values()];
}

function reachableExposures({ ips }: NodeAgentObjects): ReturnType<typeof exposures> {
  return exposures(ips.filter(({ metadata }) => metadata.labels?.[networkLabel.hostUnreachable] !== 'true'));
}

/** What is neither a node of ours, nor a pod of ours or of a peer: reached through the node that answers for it, or through the gateway's own. */
function hostsAmong(
  exposed: readonly Exposure[],
  nodes: readonly GatewayNode[],
  ranges: readonly string[],
): GatewayModel['hosts'] {
  const overlay = new Set(nodes.map(({ overlayAddress }) => overlayAddress));
  const isPod = memberOf(ranges);
  return exposed
    .filter(({ host }) => !overlay.has(host) && !isPod(host))
    .map(({ host, servedBy }) => {
      const node = nodes.find(({ name }) => name === servedBy);
      return { ip: host, ...(node !== undefined && { node: node.name }) };
    })
    .sort((a, b) => compareText(a.ip, b.ip));
}

function memberOf(cidrs: readonly string[]): (address: string) => boolean {
  const ranges = cidrs
    .flatMap((cidr) => parseCidr(cidr) ?? [])
    .map(({ base, length }) => ({
      first: base,
      end: base + 2 ** (32 - length),
    }));
  return (text) => {
    const address = parseAddress(text);
    return address !== undefined && ranges.some(({ first, end }) => first <= address && address < end);
  };
}

function siblingOf(link: Link): readonly Sibling[] {
  if (link.fabric === undefined) return [];
  const { remoteCidrs, overlayAddress, vni } = link.fabric;
  const active = link.pods.some((pod) => pod.active);
  const underlayAddresses = active ? [...new Set(link.pods.map(({ ip }) => ip))] : [];
  return [{ link: link.name, remoteCidrs, overlayAddress, underlayAddresses, vni }];
}

/** All gateway pods that run on `node`, with their links. */
export const gatewayPodsOn = (objects: NodeAgentObjects, node: string) =>
  linksOf(objects).flatMap((link) => link.pods.filter((pod) => pod.node === node).map((pod) => ({ link, pod })));
