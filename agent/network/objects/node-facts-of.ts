/** Objects to what this node has to know. Any order of the objects gives the same model. */
import type { KubeObject } from '#shared/domain/kube-object.ts';
import { networkAnnotation } from '#shared/domain/network-keys.ts';
import type { Ip } from '#shared/schema/liqo/ip.ts';
import type { CniTraits } from '../kernel/cni.ts';
import type { BridgePorts } from '../node/bridge-ports.ts';
import type { ExposedHost, NodeLink, NodeModel } from '../plan/node-model.ts';
import { activePod, type GatewayPod, internalAddresses, type Link, linksOf } from './link-objects.ts';
import { type LinkSizes, sizeOf } from './link-sizes.ts';
import type { NodeAgentObjects } from './objects.ts';
import { podRanges } from './ranges.ts';
import { compareText, firewallsFor, routesFor } from './user-targets.ts';

export interface NodeContext {
  readonly node: string;
  readonly fullMasquerade: boolean;
  readonly rulePriority: number;
  readonly matchesSockets?: boolean;
  readonly cni?: CniTraits;
  readonly sizes?: LinkSizes;
  readonly bridgePorts: BridgePorts;
}

/** Undefined while this node has no place on the overlay: then it is to own nothing. */
export function nodeModelOf(objects: NodeAgentObjects, context: NodeContext): NodeModel | undefined {
  const { node, fullMasquerade, rulePriority, matchesSockets = false, cni, sizes, bridgePorts } = context;
  const self = objects.internalNodes.find(({ metadata }) => metadata.name === node);
  if (self === undefined || self.metadata.deletionTimestamp !== undefined) return undefined;
  const links = linksOf(objects);
  const of = { is: 'node', node } as const;
  return {
    node,
    podCidrs: podRanges(objects.networks),
    overlayAddress: self.spec.interface.node.ip,
    links: links.flatMap((link) => nodeLink(link, sizes)),
    gatewayNodeAddresses: gatewayNodeAddresses(links, objects),
    entrances: [...new Set(links.flatMap(({ nodePort }) => nodePort ?? []))],
    shortCuts: shortCutsOf(
      links.flatMap(({ pods }) => pods.filter((pod) => pod.node === node)),
      bridgePorts,
    ),
    masqueradedHosts: exposures(objects.ips)
      .filter(({ masquerade }) => masquerade)
      .map(({ host, exposed, servedBy }) => ({ host, exposed, ...(servedBy === node && { isHere: true as const }) })),
    fullMasquerade,
    rulePriority,
    matchesSockets,
    ...(cni === undefined ? {} : { cni }),
    firewalls: firewallsFor(of, objects.firewalls),
    routes: routesFor(of, objects.routes),
  };
}

function shortCutsOf(pods: readonly GatewayPod[], bridgePorts: BridgePorts): NodeModel['shortCuts'] {
  if (pods.some(({ uid }) => !bridgePorts.has(uid))) return undefined;
  return pods.flatMap(({ ip, uid }) => {
    const port = bridgePorts.get(uid);
    return port === undefined ? [] : [{ to: ip, ...port }];
  });
}

function nodeLink(link: Link, sizes: LinkSizes | undefined): readonly NodeLink[] {
  if (link.fabric === undefined) return [];
  const { overlayAddress, vni, remoteCidrs, mtu } = link.fabric;
  const active = activePod(link);
  return [
    {
      name: link.name,
      remoteCidrs,
      mtu: sizeOf(link, mtu, sizes),
      replicaAddresses: sorted(link.pods.map(({ ip }) => ip)),
      vni,
      ...(active === undefined ? {} : { gateway: { overlayAddress, underlayAddress: active.ip } }),
    },
  ];
}

function gatewayNodeAddresses(links: readonly Link[], objects: NodeAgentObjects): readonly string[] {
  const hosts = new Set(links.flatMap(({ pods }) => pods.map((pod) => pod.node)));
  return sorted([...hosts].flatMap((host) => nodeSources(host, objects)));
}

/** Every address that a node's packets may carry as their outer source. */
export function nodeSources(name: string, { nodes, internalNodes }: NodeAgentObjects): readonly string[] {
  const named = ({ metadata }: KubeObject): boolean => metadata.name === name;
  const { local, remote } = internalNodes.find(named)?.status?.nodeIP ?? {};
  return sorted([local, remote, ...internalAddresses(nodes.find(named))].flatMap((address) => address || []));
}

export interface Exposure extends ExposedHost {
  readonly masquerade: boolean;
  /** The node on which the host answers. */
  readonly servedBy?: string;
}

/** Granted addresses in order, each real and each exposed address once: the first object by name wins. */
export function exposures(ips: readonly Ip[]): readonly Exposure[] {
  const hosts = new Set<string>();
  const taken = new Set<string>();
  return [...ips]
    .filter(({ metadata }) => metadata.deletionTimestamp === undefined)
    .sort((a, b) => compareText(ipName(a), ipName(b)))
    .flatMap(({ metadata, spec, status }) => {
      const exposed = status?.ip;
      if (!exposed || hosts.has(spec.ip) || taken.has(exposed)) return [];
      hosts.add(spec.ip);
      taken.add(exposed);
      const servedBy = metadata.annotations?.[networkAnnotation.servedBy];
      return [
        { host: spec.ip, exposed, masquerade: spec.masquerade === true, ...(servedBy !== undefined && { servedBy }) },
      ];
    });
}

const ipName = ({ metadata }: KubeObject): string => `${metadata.namespace}/${metadata.name}`;

const sorted = (values: readonly string[]): string[] => [...new Set(values)].sort(compareText);
