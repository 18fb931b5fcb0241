/** What to tell iproute2 so that a namespace becomes what the state says. Pure; an empty answer means that nothing is written. */
import {
  type KernelState,
  localTable,
  type Neighbour,
  type OverlayDevice,
  overlayDevice,
  ownedProtocol,
  type Route,
  type Rule,
  type TunnelDevice,
  tunnelDevice,
} from './kernel-state.ts';
import type { Observed, ObservedDevice } from './observed.ts';

export interface IpCommand {
  /** A line of `ip -batch`. */
  readonly line: string;
  /** Whose failure it is, when not ours. */
  readonly configuration?: string;
}

const mine = `protocol ${ownedProtocol}`;

/** In the order in which they must run: devices, neighbours, routes, rules; then what goes. */
export function diff(state: KernelState, observed: Observed): IpCommand[] {
  const { lines, fresh } = devices(state, observed);
  // with a device go its addresses, neighbours and routes
  const kept: Observed = {
    ...observed,
    neighbours: observed.neighbours.filter(() => !fresh.has(overlayDevice)),
    routes: observed.routes.filter(({ device }) => device === undefined || !fresh.has(device)),
  };
  const missing = new Set(state.tunnel && !tunnelWillExist(state.tunnel, observed) ? [tunnelDevice] : []);
  const routes = changes(
    state.routes.filter(({ device }) => device === undefined || !missing.has(device)),
    kept.routes,
    { key: routeKey, text: routeText },
  );
  const rules = changes(state.rules, pinned(state.rules, observed.rules), { key: ruleText, text: ruleText });
  const neighbours = changes(state.neighbours, kept.neighbours, { key: ({ address }) => address, text: neighbourText });
  return [
    ...lines.map((line) => ({ line })),
    ...neighbours.wanted.map((n) => ({ line: `neigh replace ${neighbourText(n)} nud permanent ${mine}` })),
    ...routes.wanted.map((r) => ({ line: `route replace ${routeText(r)} ${mine}`, ...owner(r) })),
    // first there again, last away: at no moment is nothing local
    ...(state.ownLocalRule !== true && !observed.localFirst
      ? [{ line: `rule add priority 0 lookup ${localTable}` }]
      : []),
    ...rules.wanted.map((r) => ({ line: `rule add ${ruleText(r)} ${mine}`, ...owner(r) })),
    ...(state.ownLocalRule === true && observed.localFirst
      ? [{ line: `rule del priority 0 lookup ${localTable}` }]
      : []),
    ...rules.gone.map((r) => ({ line: `rule del ${ruleText(r)} ${mine}` })),
    ...routes.gone.map((r) => ({ line: `route del ${routeText(r)} ${mine}` })),
    ...neighbours.gone.map((n) => ({ line: `neigh del ${n.address} dev ${overlayDevice}` })),
  ];
}

/** Whether routes through the tunnel can exist after this pass. */
export const tunnelWillExist = (tunnel: TunnelDevice, observed: Observed): boolean =>
  tunnel.implementation === 'kernel' || observed.devices.has(tunnel.name);

const owner = ({ configuration }: { readonly configuration?: string }) =>
  configuration === undefined ? {} : { configuration };

function devices(state: KernelState, observed: Observed): { lines: string[]; fresh: ReadonlySet<string> } {
  const fresh = new Set<string>();
  const lines = [
    ...overlayLines(state.overlay, observed.devices.get(overlayDevice), fresh),
    ...tunnelLines(state.tunnel, observed.devices.get(tunnelDevice)),
  ];
  return { lines, fresh };
}

function overlayLines(wanted: OverlayDevice | undefined, found: ObservedDevice | undefined, fresh: Set<string>) {
  const name = overlayDevice;
  if (!wanted) {
    if (found) fresh.add(name);
    return found ? [`link del dev ${name}`] : [];
  }
  // another MAC would flush all neighbours: it takes a new device
  const usable = found?.kind === 'vxlan' && found.port === wanted.port && found.mac === wanted.mac;
  if (usable && found) return settings(name, wanted.mtu, `${wanted.address}/32`, found);
  fresh.add(name);
  return [
    ...(found ? [`link del dev ${name}`] : []),
    `link add name ${name} mtu ${wanted.mtu} address ${wanted.mac} type vxlan external dstport ${wanted.port} nolearning`,
    `address add ${wanted.address}/32 dev ${name}`,
    `link set dev ${name} up`,
  ];
}

function tunnelLines(wanted: TunnelDevice | undefined, found: ObservedDevice | undefined): string[] {
  if (!wanted) return found?.kind === 'wireguard' ? [`link del dev ${tunnelDevice}`] : [];
  if (found) return settings(wanted.name, wanted.mtu, wanted.address, found);
  if (wanted.implementation === 'userspace') return [];
  return [
    `link add name ${wanted.name} mtu ${wanted.mtu} type wireguard`,
    `address add ${wanted.address} dev ${wanted.name}`,
    `link set dev ${wanted.name} up`,
  ];
}

function settings(name: string, mtu: number, address: string, found: ObservedDevice): string[] {
  return [
    ...(found.mtu === mtu ? [] : [`link set dev ${name} mtu ${mtu}`]),
    ...(found.addresses.includes(address) ? [] : [`address add ${address} dev ${name}`]),
    ...found.addresses.filter((other) => other !== address).map((other) => `address del ${other} dev ${name}`),
    ...(found.up ? [] : [`link set dev ${name} up`]),
  ];
}

interface Texts<T> {
  /** What one of its kind there can be. */
  readonly key: (item: T) => string;
  /** All of it. */
  readonly text: (item: T) => string;
}

/** `gone` holds what no wanted item replaces. */
function changes<T>(wanted: readonly T[], found: readonly T[], { key, text }: Texts<T>): { wanted: T[]; gone: T[] } {
  const has = new Map(found.map((item) => [key(item), text(item)]));
  const keys = new Set(wanted.map(key));
  return {
    wanted: wanted.filter((item) => has.get(key(item)) !== text(item)),
    gone: found.filter((item) => !keys.has(key(item))),
  };
}

const routeKey = ({ table, destination, metric = 0 }: Route): string => `${table} ${destination} ${metric}`;

function routeText(route: Route): string {
  const { table, destination, type, device, via, onlink, encap, source, metric, mtu } = route;
  const scope =
    route.scope ?? (type === 'local' ? 'host' : via !== undefined || type === 'unreachable' ? 'global' : 'link');
  return [
    type ?? '',
    destination,
    encap ? `encap ip id ${encap.vni} dst ${encap.destination}` : '',
    via === undefined ? '' : `via ${via}`,
    device === undefined ? '' : `dev ${device}`,
    onlink ? 'onlink' : '',
    `table ${table}`,
    source === undefined ? '' : `src ${source}`,
    `scope ${scope}`,
    metric === undefined || metric === 0 ? '' : `metric ${metric}`,
    mtu === undefined ? '' : `mtu ${mtu}`,
  ]
    .filter(Boolean)
    .join(' ');
}

function ruleText({ priority, table, from, to, iif, oif, fwmark }: Rule): string {
  return [
    priority === undefined ? '' : `priority ${priority}`,
    from === undefined ? '' : `from ${from}`,
    to === undefined ? '' : `to ${to}`,
    iif === undefined ? '' : `iif ${iif}`,
    oif === undefined ? '' : `oif ${oif}`,
    fwmark === undefined ? '' : `fwmark 0x${fwmark.toString(16)}`,
    `lookup ${table}`,
  ]
    .filter(Boolean)
    .join(' ');
}

/** A wanted rule without priority is there when any rule equals it otherwise: that one's priority is left out of the comparison. */
function pinned(wanted: readonly Rule[], found: readonly Rule[]): Rule[] {
  const free = new Set(wanted.filter(({ priority }) => priority === undefined).map(ruleText));
  return found.map((rule) => {
    const { priority: _, ...rest } = rule;
    return free.delete(ruleText(rest)) ? rest : rule;
  });
}

const neighbourText = ({ address, mac, device }: Neighbour): string => `${address} lladdr ${mac} dev ${device}`;
