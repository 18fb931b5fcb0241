/** What iproute2 prints of ours, as data. Pure: text in, facts out. */
import { canonicalCidr } from '#shared/domain/cidr.ts';
import {
  localTable,
  type Neighbour,
  overlayDevice,
  ownedProtocol,
  type Route,
  type Rule,
  tunnelDevice,
} from './kernel-state.ts';

export interface ObservedDevice {
  /** `vxlan`, `wireguard`, `tun`; undefined for others. */
  readonly kind: string | undefined;
  readonly up: boolean;
  readonly mtu: number;
  readonly mac: string | undefined;
  /** Of a metadata-mode VXLAN device. */
  readonly port: number | undefined;
  /** IPv4, with prefix length. */
  readonly addresses: readonly string[];
}

/** Of everything else in the namespace nothing is kept. */
export interface Observed {
  readonly devices: ReadonlyMap<string, ObservedDevice>;
  readonly routes: readonly Route[];
  readonly rules: readonly Rule[];
  readonly neighbours: readonly Neighbour[];
  /** Whether the kernel's rule 0, `lookup local`, is there. */
  readonly localFirst: boolean;
}

export const readOptions = ['-4', '-details', '-Numeric', '-oneline', '-force', '-batch'] as const;

/** For `ip` with `readOptions`: one process reads all of it. Addresses come before links, whose family would stick. */
export const readBatch = (devices: readonly string[]): string =>
  [
    ...devices.map((device) => `address show dev ${device}`),
    'rule show priority 0',
    `rule show protocol ${ownedProtocol}`,
    `route show table all proto ${ownedProtocol}`,
    `neigh show dev ${overlayDevice} nud permanent`,
    ...devices.map((device) => `link show dev ${device}`),
    '',
  ].join('\n');

/** For `ip`: it tells of changes of what `readBatch` reads, and of more. */
export const monitorArguments = [
  '-4',
  '-details',
  '-Numeric',
  '-oneline',
  'monitor',
  'address',
  'link',
  'route',
  'rule',
  'neigh',
];

const devicesOfOurs = [overlayDevice, tunnelDevice];
const ownInMonitor = new RegExp(`\\bproto(col)? ${ownedProtocol}\\b|^(Deleted )?0:`);

/** Whether a line of it is about something that is ours, or the kernel's rule 0. */
export const isOursInMonitor = (line: string): boolean =>
  devicesOfOurs.some((device) => line.includes(device)) || ownInMonitor.test(line);

export function parseObserved(text: string): Observed {
  const devices = new Map<string, ObservedDevice>();
  const addresses = new Map<string, string[]>();
  const routes: Route[] = [];
  const rules: Rule[] = [];
  const neighbours: Neighbour[] = [];
  let localFirst = false;
  for (const line of text.split('\n')) {
    const words: readonly string[] = line.match(/[^\\\s]+/g) ?? [];
    const [first = '', second = '', third = '', fourth = ''] = words;
    if (third === 'inet') addresses.set(second, [...(addresses.get(second) ?? []), fourth]);
    else if (/^\d+:$/.test(first) && line.includes('<')) devices.set(...parseLink(words));
    else if (first === '0:') localFirst = true;
    else if (/^\d+:$/.test(first)) rules.push(...parseRule(words));
    else if (/^\d+$/.test(first)) routes.push(parseRoute(words));
    else if (words.includes('lladdr')) neighbours.push(parseNeighbour(words));
  }
  for (const [name, device] of devices) devices.set(name, { ...device, addresses: addresses.get(name) ?? [] });
  return { devices, routes, rules, neighbours, localFirst };
}

const after = (words: readonly string[], word: string): string | undefined => {
  const at = words.indexOf(word);
  return at < 0 ? undefined : words[at + 1];
};

function parseLink(words: readonly string[]): [string, ObservedDevice] {
  const name = (words[1] ?? '').replace(/(@.*)?:$/, '');
  const kind = ['vxlan', 'wireguard', 'tun'].find((candidate) => words.includes(candidate));
  const metadata = kind === 'vxlan' && words.includes('external');
  const mac = words.find((word) => /^([0-9a-f]{2}:){5}[0-9a-f]{2}$/.test(word));
  return [
    name,
    {
      kind,
      up: /[<,]UP[,>]/.test(words[2] ?? ''),
      mtu: Number(after(words, 'mtu')),
      mac,
      port: metadata ? Number(after(words, 'dstport')) : undefined,
      addresses: [],
    },
  ];
}

function parseRule(words: readonly string[]): Rule[] {
  if (after(words, 'proto') !== String(ownedProtocol)) return [];
  const range = (word: string | undefined) => (word === undefined || word === 'all' ? undefined : canonicalCidr(word));
  const [from, to] = [range(after(words, 'from')), range(after(words, 'to'))];
  const [iif, oif, fwmark] = [after(words, 'iif'), after(words, 'oif'), after(words, 'fwmark')];
  return [
    {
      priority: Number((words[0] ?? '').slice(0, -1)),
      table: tableOf(after(words, 'lookup')),
      ...(from === undefined ? {} : { from }),
      ...(to === undefined ? {} : { to }),
      ...(iif === undefined ? {} : { iif }),
      ...(oif === undefined ? {} : { oif }),
      ...(fwmark === undefined ? {} : { fwmark: Number(fwmark.split('/')[0]) }),
    },
  ];
}

const tableOf = (word: string | undefined): number => (word === 'local' ? localTable : Number(word));

const routeTypes: Readonly<Record<string, NonNullable<Route['type']>>> = { '2': 'local', '7': 'unreachable' };
const mainTable = '254';
const scopes: Readonly<Record<string, NonNullable<Route['scope']>>> = {
  '0': 'global',
  '200': 'site',
  '253': 'link',
  '254': 'host',
  '255': 'nowhere',
};

/** `TYPE DESTINATION [encap ip id N src A dst B ttl T tos O] key value …`; the encapsulation has a `src` and `dst` of its own. */
function parseRoute(all: readonly string[]): Route {
  const encapsulated = all[2] === 'encap';
  const [encap, words] = encapsulated ? [all.slice(3, 14), all.slice(14)] : [[], all.slice(2)];
  const table = after(words, 'table');
  const type = routeTypes[all[0] ?? ''];
  const [device, via, source] = [after(words, 'dev'), after(words, 'via'), after(words, 'src')];
  const [scope, metric, mtu] = [after(words, 'scope'), after(words, 'metric'), after(words, 'mtu')];
  return {
    table: table === undefined || table === mainTable ? 'main' : Number(table),
    destination: all[1] === 'default' ? 'default' : canonicalCidr(all[1] ?? ''),
    ...(type === undefined ? {} : { type }),
    ...(device === undefined ? {} : { device }),
    ...(via === undefined ? {} : { via }),
    ...(words.includes('onlink') ? { onlink: true } : {}),
    ...(encapsulated ? { encap: { vni: Number(after(encap, 'id')), destination: after(encap, 'dst') ?? '' } } : {}),
    ...(source === undefined ? {} : { source }),
    ...(scope === undefined ? {} : { scope: scopes[scope] ?? 'global' }),
    ...(metric === undefined ? {} : { metric: Number(metric) }),
    ...(mtu === undefined ? {} : { mtu: Number(mtu) }),
  };
}

const parseNeighbour = (words: readonly string[]): Neighbour => ({
  device: overlayDevice, // it is not printed when it was asked for
  address: words[0] ?? '',
  mac: after(words, 'lladdr') ?? '',
});
