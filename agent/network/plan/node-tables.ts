/**
 * The nft tables of a node: packets of peers keep their source, packets of everything but our pods get this node's overlay address, and packets
 * injected from outside the overlay are dropped.
 */
import { covering, distinctAddresses } from '#shared/domain/cidr.ts';
import { unknownCni } from '../kernel/cni.ts';
import { type NftTable, nftTable, overlayDevice, overlayPort, pingPort } from '../kernel/kernel-state.ts';
import { chains, prefixMap, set } from '../kernel/nft-text.ts';
import { ip6Guard } from '../kernel/overlay.ts';
import { ofOpenConnection } from '../kernel/socket-match.ts';
import type { NodeLink, NodeModel, ShortCut } from './node-model.ts';

const fromOverlay = `iifname "${overlayDevice}"`;
const intoOverlay = `oifname "${overlayDevice}"`;

export function nodeTables(model: NodeModel): NftTable[] {
  const exposed = [...model.masqueradedHosts].sort((a, b) => (a.exposed < b.exposed ? -1 : 1));
  const links = [...model.links].sort((a, b) => (a.name < b.name ? -1 : 1));
  const table: NftTable = {
    family: 'ip',
    name: nftTable,
    maps: { exposed: Object.fromEntries(exposed.map(({ exposed: outside, host }) => [outside, host])) },
    body: chains([
      ...underlay(model, links),
      ownAddress(model, links),
      {
        name: 'entrances',
        base: 'type filter hook input priority 200',
        rules: [entrances(model)],
      },
      {
        name: 'prerouting',
        base: 'type nat hook prerouting priority dstnat',
        rules: ['dnat to ip daddr map @exposed'],
      },
      { name: 'output', base: 'type nat hook output priority -100', rules: ['dnat to ip daddr map @exposed'] },
      {
        name: 'postrouting',
        base: `type nat hook postrouting priority ${(model.cni ?? unknownCni).snatPriority}`,
        rules: [...hiddenCallers(model), ...sources(model, links)],
      },
    ]),
  };
  return [table, ip6Guard, ...shortCuts(model.shortCuts ?? [])];
}

export const shortCutTable = { family: 'netdev', name: nftTable } as const;

/** One chain per bridge, at its way out: before the kernel looks at what the bridge can send as one segment. */
function shortCuts(cuts: readonly ShortCut[]): NftTable[] {
  const sorted = [...cuts].sort((a, b) => (`${a.bridge} ${a.to}` < `${b.bridge} ${b.to}` ? -1 : 1));
  if (sorted.length === 0) return [];
  const bridges = [...new Set(sorted.map(({ bridge }) => bridge))];
  const rule = ({ to, port }: ShortCut) => `ip daddr ${to} udp dport ${overlayPort} fwd to "${port}"`;
  const body = chains(
    bridges.map((bridge, i) => ({
      name: `short_cut_${i}`,
      base: `type filter hook egress device "${bridge}" priority filter`,
      rules: sorted.filter((cut) => cut.bridge === bridge).map(rule),
    })),
  );
  return [{ ...shortCutTable, body, maps: {}, optional: true }];
}

/** Overlay packets between known ends stay out of conntrack, so that no CNI rewrites their source; all others are dropped. */
function underlay(model: NodeModel, links: readonly NodeLink[]) {
  const port = `udp dport ${overlayPort}`;
  const peers = distinctAddresses([...links.flatMap((l) => l.replicaAddresses), ...model.gatewayNodeAddresses]);
  const replicas = distinctAddresses(links.flatMap((link) => link.replicaAddresses));
  const { symmetricRoutes } = model.cni ?? unknownCni;
  return [
    {
      name: 'underlay_in',
      base: 'type filter hook prerouting priority raw',
      rules: [peers.length === 0 ? '' : `${port} ip saddr ${set(peers)} notrack`],
    },
    {
      name: 'underlay_out',
      base: 'type filter hook output priority raw',
      rules: [replicas.length === 0 ? '' : `${port} ip daddr ${set(replicas)} notrack`],
    },
    {
      name: 'input',
      base: 'type filter hook input priority filter',
      rules: [
        symmetricRoutes ? `${port} fib saddr . iif oif missing counter drop` : '',
        ...links.flatMap((link) => {
          const from = distinctAddresses([...link.replicaAddresses, ...model.gatewayNodeAddresses]);
          return from.length === 0 ? [] : [`${port} ip saddr ${set(from)} @th,96,24 ${link.vni} accept`];
        }),
        `${port} counter drop`,
      ],
    },
  ];
}

/**
 * Before the cluster's proxy has programmed a node port, what comes for it is taken for the node's own; were it let in, conntrack would keep
 * that decision for as long as the peer goes on dialling. Dropped here, after IPVS has taken what is its own, it leaves no trace.
 */
const entrances = (model: NodeModel): string =>
  model.entrances.length === 0 ? '' : `udp dport ${set([...model.entrances].sort((a, b) => a - b))} counter drop`;

/**
 * Peers answer a node by its address and never call it: neither its own ports nor NodePorts are for them. Pings of gateways are. What belongs
 * to an open connection is no call, even if conntrack has been emptied and takes it for one.
 */
function ownAddress({ overlayAddress, matchesSockets }: NodeModel, links: readonly NodeLink[]) {
  const gateways = distinctAddresses(links.flatMap(({ gateway }) => gateway?.overlayAddress ?? []));
  const called = `${fromOverlay} ip daddr ${overlayAddress}`;
  return {
    name: 'own_address',
    base: 'type filter hook prerouting priority mangle',
    rules: [
      gateways.length === 0 ? '' : `${called} ip saddr ${set(gateways)} udp dport ${pingPort} accept`,
      `${called} meta l4proto icmp accept`,
      matchesSockets ? `${called} ${ofOpenConnection} accept` : '',
      `${called} ct state new counter drop`,
    ],
  };
}

/** Callers from peers, also after a Service's address was translated, unless the host answers here; and local callers that used the exposed address. */
function hiddenCallers({ masqueradedHosts }: NodeModel): string[] {
  const hosts = distinctAddresses(masqueradedHosts.map(({ host }) => host));
  if (hosts.length === 0) return [];
  const exposed = distinctAddresses(masqueradedHosts.map((entry) => entry.exposed));
  const elsewhere = distinctAddresses(masqueradedHosts.filter(({ isHere }) => !isHere).map(({ host }) => host));
  return [
    elsewhere.length === 0 ? '' : `${fromOverlay} ct original ip daddr ${set(elsewhere)} masquerade`,
    `ct original ip daddr ${set(exposed)} ip daddr ${set(hosts)} masquerade`,
  ];
}

/** A translation into itself marks the connection as translated: no masquerade of the CNI or of kube-proxy follows. */
function sources({ fullMasquerade, podCidrs, overlayAddress }: NodeModel, links: readonly NodeLink[]): string[] {
  const toNode = `${intoOverlay} snat to ${overlayAddress}`;
  const views = covering(links.flatMap((link) => link.remoteCidrs));
  const pods = covering(podCidrs);
  return [
    views.length === 0 ? '' : unchanged(fromOverlay, views),
    fullMasquerade || pods.length === 0 ? '' : unchanged(intoOverlay, pods),
    toNode,
  ];
}

const unchanged = (where: string, cidrs: readonly string[]): string =>
  `${where} ip saddr ${set(cidrs)} counter snat ip prefix to ip saddr map ${prefixMap(cidrs.map((c) => [c, c]))}`;
