/** The nft tables of a gateway: translation between real addresses (tunnel) and views (overlay), and which sources may send to which destinations. */
import { byAddress, covering, distinctAddresses, firstAddress } from '#shared/domain/cidr.ts';
import { type NftTable, nftTable, overlayDevice, overlayPort, pingPort, tunnelDevice } from '../kernel/kernel-state.ts';
import { type Chain, chains, prefixMap, set } from '../kernel/nft-text.ts';
import { ip6Guard } from '../kernel/overlay.ts';
import type { GatewayModel } from './gateway-model.ts';
import { tunnelAddresses } from './tunnel-addresses.ts';

const fromTunnel = `iifname "${tunnelDevice}"`;
const intoTunnel = `oifname "${tunnelDevice}"`;
const fromOverlay = `iifname "${overlayDevice}"`;
const intoOverlay = `oifname "${overlayDevice}"`;
/** Of packets in flight, so that what the kernel answers to them (ICMP) goes back where they came from (net.ipv4.fwmark_reflect). */
export const marks = { fromTunnel: 0x69730001, fromOverlay: 0x69730002 } as const;
/** Room for the headers of IPv4 and TCP. */
const headers = 40;

/** Maps of single addresses: of destinations on their way in, of sources on their way out. */
export const inward = 'inward';
export const outward = 'outward';

export function gatewayTables(model: GatewayModel): NftTable[] {
  const table: NftTable = {
    family: 'ip',
    name: nftTable,
    maps: exposures(model),
    body: chains([...underlay(model), antiSpoofing(model), ...translation(model), forwarding(model), unmarking]),
  };
  return [table, ip6Guard];
}

/** Where one address is exposed twice, its own packets carry the lower of both. */
function exposures({ exposed }: GatewayModel): NftTable['maps'] {
  const sorted = [...exposed].sort((a, b) => byAddress(a.exposed, b.exposed));
  return {
    [inward]: Object.fromEntries(sorted.map(({ exposed: outside, ip }) => [outside, ip])),
    [outward]: Object.fromEntries([...sorted].reverse().map(({ exposed: outside, ip }) => [ip, outside])),
  };
}

function underlay({ nodes, siblings, overlay }: GatewayModel): Chain[] {
  const port = `udp dport ${overlayPort}`;
  const known = distinctAddresses([
    ...nodes.flatMap((node) => node.sources),
    ...siblings.flatMap((sibling) => sibling.underlayAddresses),
  ]);
  return [
    { name: 'underlay_in', base: 'type filter hook prerouting priority raw', rules: [`${port} notrack`] },
    { name: 'underlay_out', base: 'type filter hook output priority raw', rules: [`${port} notrack`] },
    {
      name: 'input',
      base: 'type filter hook input priority filter',
      rules: [
        known.length === 0 ? '' : `${port} ip saddr ${set(known)} @th,96,24 ${overlay.vni} accept`,
        `${port} counter drop`,
        `iifname { "${overlayDevice}", "${tunnelDevice}" } meta l4proto != icmp counter drop`,
      ],
    },
  ];
}

/** Before any translation: headers are as they were on the wire, for requests and replies alike, so that no state is needed. */
function antiSpoofing(model: GatewayModel): Chain {
  const { own, peer } = tunnelAddresses(model.role);
  const real = covering([...model.remote.pods, ...model.remote.external].map((view) => view.real));
  const local = covering([...model.local.pods, model.local.external]);
  const extra = covering(model.routes.flatMap(({ table }) => table.rules.flatMap((r) => r.routes.map((e) => e.dst))));
  return {
    name: 'origin',
    base: 'type filter hook prerouting priority mangle',
    rules: [
      `${fromOverlay} meta mark set ${marks.fromOverlay}`,
      `${fromTunnel} meta mark set ${marks.fromTunnel}`,
      `${fromTunnel} ip saddr ${peer} ip daddr ${own} accept`,
      `${fromTunnel} ip saddr ${peer} meta l4proto icmp ip daddr ${set(local)} accept`,
      real.length === 0 ? `${fromTunnel} counter drop` : `${fromTunnel} ip saddr != ${set(real)} counter drop`,
      `${fromTunnel} ip daddr != ${set(covering([...local, ...extra]))} counter drop`,
    ],
  };
}

function translation(model: GatewayModel): Chain[] {
  const { own, peer } = tunnelAddresses(model.role);
  const moved = [...model.remote.pods, ...model.remote.external]
    .filter(({ real, view }) => real !== view)
    .sort((a, b) => byAddress(a.view, b.view));
  const node = model.nodes.find((candidate) => candidate.own);
  const pods = covering(model.local.pods);
  const outwards = prefixMap(moved.map(({ view, real }) => [view, real]));
  const inwards = prefixMap([...moved].sort((a, b) => byAddress(a.real, b.real)).map(({ view, real }) => [real, view]));
  return [
    {
      name: 'prerouting',
      base: 'type nat hook prerouting priority dstnat',
      rules: [
        `${fromOverlay} ip daddr ${model.overlay.address} udp dport ${pingPort} dnat to ${peer}`,
        moved.length === 0 ? '' : `${fromOverlay} dnat ip prefix to ip daddr map ${outwards}`,
        node ? `${fromTunnel} ip daddr ${own} udp dport ${pingPort} dnat to ${node.overlayAddress}` : '',
        `${fromTunnel} dnat to ip daddr map @${inward}`,
      ],
    },
    {
      name: 'postrouting',
      base: 'type nat hook postrouting priority srcnat',
      rules: [
        `${intoTunnel} ip daddr ${peer} snat to ${own}`,
        pods.length === 0 ? '' : `${intoTunnel} ip saddr ${set(pods)} accept`,
        `${intoTunnel} snat to ip saddr map @${outward}`,
        `${intoTunnel} snat to ${firstAddress(model.local.external)}`,
        `${fromTunnel} ${intoOverlay} ip saddr ${peer} snat to ${model.overlay.address}`,
        moved.length === 0 ? '' : `${fromTunnel} ${intoOverlay} snat ip prefix to ip saddr map ${inwards}`,
      ],
    },
  ];
}

/** Between overlay and tunnel only. A RouteConfiguration may lead elsewhere; what it does not name stays unreachable by the tables' defaults. */
function forwarding({ mtu, routes }: GatewayModel): Chain {
  const segment = `tcp flags & (syn | rst) == syn tcp option maxseg size set ${mtu - headers}`;
  return {
    name: 'forward',
    base: 'type filter hook forward priority filter',
    rules: [
      'ct state invalid counter drop',
      `${intoTunnel} ${segment}`,
      `${fromTunnel} ${segment}`,
      `${fromOverlay} ${intoTunnel} accept`,
      `${fromTunnel} ${intoOverlay} accept`,
      routes.length > 0 ? `${fromTunnel} accept` : '',
      routes.length > 0 ? `${fromOverlay} accept` : '',
      routes.length > 0 ? 'ct state established,related accept' : '',
      'counter drop',
    ],
  };
}

/** The outer packet must not be routed by the mark of the inner one. */
const unmarking: Chain = {
  name: 'unmark',
  base: 'type filter hook postrouting priority mangle',
  rules: [`${intoOverlay} meta mark set 0`, `${intoTunnel} meta mark set 0`],
};
