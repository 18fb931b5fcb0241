/** From what a gateway knows to what the kernel of its pod should have. Deterministic: the same model in any order gives the same state. */
import { byAddress, canonicalCidr, contains } from '#shared/domain/cidr.ts';
import {
  type KernelState,
  localTable,
  overlayDevice,
  type Route,
  type Rule,
  routingTables,
  type TunnelDevice,
  tunnelDevice,
} from '../kernel/kernel-state.ts';
import { inOrder, neighboursOf, overlayOf, routeThrough, routeTo, unreachable } from '../kernel/overlay.ts';
import { userTables } from '../kernel/user-firewall.ts';
import { userRouting } from '../kernel/user-routes.ts';
import type { GatewayModel, GatewayNode, Sibling } from './gateway-model.ts';
import { gatewayTables, inward, marks, outward } from './gateway-tables.ts';
import { tunnelAddresses } from './tunnel-addresses.ts';

const { fromOverlay, fromTunnel } = routingTables;

const rules: readonly Rule[] = [
  { priority: 101, iif: overlayDevice, table: fromOverlay },
  { priority: 102, iif: tunnelDevice, table: fromTunnel },
  // what the kernel itself answers goes back where the packet came from
  { priority: 103, iif: 'lo', fwmark: marks.fromTunnel, table: fromOverlay },
  { priority: 104, iif: 'lo', fwmark: marks.fromOverlay, table: fromTunnel },
  // after the peers' real addresses: one of them may well be this pod's own
  { priority: 105, table: localTable },
];

export function planGateway(model: GatewayModel): KernelState {
  const user = { ...userTables(model.firewalls), ...userRouting(model.routes) };
  const overlayAddresses = [...model.nodes, ...model.siblings].map(({ overlayAddress }) => overlayAddress);
  return {
    ownLocalRule: true,
    translation: { sources: outward, destinations: inward },
    overlay: overlayOf(model.overlay.address, model.mtu),
    tunnel: tunnelOf(model),
    neighbours: neighboursOf(overlayAddresses),
    routes: [...towardsPeer(model), ...fromPeer(model), ...ownAddresses(model), ...user.routes],
    rules: [...rules, ...user.rules],
    tables: [...gatewayTables(model), ...user.tables],
    sysctls: {
      'net/ipv4/ip_forward': '1',
      'net/ipv4/fwmark_reflect': '1',
      'net/ipv4/conf/all/rp_filter': '0',
      [`net/ipv4/conf/${overlayDevice}/rp_filter`]: '0',
      [`net/ipv4/conf/${tunnelDevice}/rp_filter`]: '0',
      // what comes from a peer's pod may come from an address that is this pod's own
      [`net/ipv4/conf/${overlayDevice}/accept_local`]: '1',
      [`net/ipv4/conf/${tunnelDevice}/accept_local`]: '1',
      // a table that was flushed is rebuilt from packets in the middle of a connection
      'net/netfilter/nf_conntrack_tcp_loose': '1',
      'net/netfilter/nf_conntrack_tcp_be_liberal': '1',
    },
    refused: user.refused,
  };
}

function tunnelOf({ role, mtu, wireGuard }: GatewayModel): TunnelDevice {
  const { implementation, listenPort, privateKeyFile, peer } = wireGuard;
  return {
    name: tunnelDevice,
    implementation,
    mtu,
    address: `${tunnelAddresses(role).own}/30`,
    listenPort,
    privateKeyFile,
    ...(peer === undefined ? {} : { peer }),
  };
}

/** What is for this namespace itself, whichever way it comes. */
function ownAddresses({ overlay, role }: GatewayModel): Route[] {
  const own = (table: number, address: string, device: string): Route => ({
    table,
    destination: `${address}/32`,
    type: 'local',
    device,
  });
  return [own(fromOverlay, overlay.address, overlayDevice), own(fromTunnel, tunnelAddresses(role).own, tunnelDevice)];
}

function towardsPeer({ remote, role }: GatewayModel): Route[] {
  const real = [...remote.pods, ...remote.external].map((view) => canonicalCidr(view.real));
  const destinations = [...new Set([...real, `${tunnelAddresses(role).peer}/32`])].sort(byAddress);
  return [
    ...destinations.map(
      (destination): Route => ({ table: fromOverlay, destination, device: tunnelDevice, scope: 'link' }),
    ),
    unreachable(fromOverlay, 'default'),
  ];
}

function fromPeer(model: GatewayModel): Route[] {
  const byKey = new Map<string, Route>();
  // later ones win: a pod's own place over its node's prefix, a host over everything
  for (const route of [
    unreachable(fromTunnel, 'default'),
    ...model.siblings.flatMap((sibling) => towardsSibling(sibling)),
    ...model.nodes.flatMap((node) => towardsNode(node, model.overlay.vni)),
    ...strays(model),
    ...hosts(model),
  ]) {
    byKey.set(route.destination, route);
  }
  return inOrder([...byKey.values()]);
}

function towardsNode(node: GatewayNode, vni: number): Route[] {
  const encap = { vni, destination: node.underlayAddress };
  return [
    routeTo(fromTunnel, node.overlayAddress, encap),
    ...[...new Set(node.podCidrs.map(canonicalCidr))].map((cidr) =>
      routeThrough(fromTunnel, cidr, node.overlayAddress, encap),
    ),
  ];
}

/** A pod inside its own node's prefix needs no route. */
function strays({ strayPods, nodes, overlay }: GatewayModel): Route[] {
  const byName = new Map(nodes.map((node) => [node.name, node]));
  return strayPods.flatMap(({ ip, node: name }) => {
    const node = byName.get(name);
    if (!node || node.podCidrs.some((cidr) => contains(cidr, ip))) return [];
    const encap = { vni: overlay.vni, destination: node.underlayAddress };
    return [routeThrough(fromTunnel, `${ip}/32`, node.overlayAddress, encap)];
  });
}

function hosts({ hosts: addresses, nodes, overlay }: GatewayModel): Route[] {
  const own = nodes.find((node) => node.own);
  return addresses.map(({ ip, node }) => {
    const by = nodes.find(({ name }) => name === node) ?? own;
    return by
      ? routeThrough(fromTunnel, `${ip}/32`, by.overlayAddress, { vni: overlay.vni, destination: by.underlayAddress })
      : unreachable(fromTunnel, `${ip}/32`);
  });
}

function towardsSibling({ remoteCidrs, overlayAddress, underlayAddresses, vni }: Sibling): Route[] {
  const [active] = underlayAddresses;
  return [...new Set(remoteCidrs.map(canonicalCidr))].map((cidr) =>
    active === undefined
      ? unreachable(fromTunnel, cidr)
      : routeThrough(fromTunnel, cidr, overlayAddress, { vni, destination: active }),
  );
}
