/** From what a node knows to what its kernel should have. Deterministic: the same model in any order gives the same state. */
import { byAddress, canonicalCidr } from '#shared/domain/cidr.ts';
import { type KernelState, overlayDevice, type Route, routingTables } from '../kernel/kernel-state.ts';
import { inOrder, neighboursOf, overlayOf, routeThrough, routeTo, unreachable } from '../kernel/overlay.ts';
import { userTables } from '../kernel/user-firewall.ts';
import { userRouting } from '../kernel/user-routes.ts';
import type { NodeLink, NodeModel } from './node-model.ts';
import { nodeTables, shortCutTable } from './node-tables.ts';

const smallestMtu = 1280;

export function planNode(model: NodeModel): KernelState {
  const user = { ...userTables(model.firewalls), ...userRouting(model.routes) };
  const gateways = model.links.flatMap((link) => link.gateway?.overlayAddress ?? []);
  const routes = model.links.flatMap((link) => routesTo(link, model.overlayAddress));
  return {
    overlay: overlayOf(model.overlayAddress, overlayMtu(model.links)),
    neighbours: neighboursOf(gateways),
    routes: [...inOrder(routes), ...user.routes],
    rules: [{ priority: model.rulePriority, table: routingTables.node }, ...user.rules],
    tables: [...nodeTables(model), ...user.tables],
    undecided: model.shortCuts === undefined ? [shortCutTable] : [],
    sysctls: {
      'net/ipv4/ip_forward': '1',
      [`net/ipv4/conf/${overlayDevice}/rp_filter`]: '0',
    },
    claimsFlows: true,
    entrances: [...model.entrances].sort((a, b) => a - b),
    refused: user.refused,
  };
}

/** One device carries all links, so that it has the largest of their MTUs; each route has its own. */
const overlayMtu = (links: readonly NodeLink[]): number =>
  links.reduce((largest, link) => Math.max(largest, link.mtu), smallestMtu);

function routesTo(link: NodeLink, source: string): Route[] {
  const table = routingTables.node;
  const destinations = [...new Set(link.remoteCidrs.map(canonicalCidr))].sort(byAddress);
  const { gateway } = link;
  if (!gateway) return destinations.map((destination) => unreachable(table, destination));
  const encap = { vni: link.vni, destination: gateway.underlayAddress };
  const route = { mtu: link.mtu };
  return [
    { ...routeTo(table, gateway.overlayAddress, encap, source), ...route },
    ...destinations.map((destination) => ({
      ...routeThrough(table, destination, gateway.overlayAddress, encap, source),
      ...route,
    })),
  ];
}
