/** Clusters and peerings as the nodes and edges of a map. */
import type { Cluster, Peering } from '#shared/api-client/broker-api.ts';
import { type Link, linkOf, linkText, pairOf } from './peering.ts';
import { amount, labelTexts } from './text.ts';

export interface MapNode {
  /** `NAME`, or `TENANT/NAME` of another tenant. */
  readonly id: string;
  readonly kind: 'on' | 'away' | 'foreign';
  readonly radius: number;
  /** For screen readers. */
  readonly words: string;
  /** Searched in. */
  readonly text: string;
}

export interface MapEdge {
  readonly id: string;
  readonly from: string;
  readonly to: string;
  readonly tone: EdgeTone;
  readonly width: number;
  /** The other direction has one as well: both are bent. */
  readonly bent: boolean;
  readonly words: string;
}

export type EdgeTone = 'good' | 'slow' | 'warn' | 'busy' | 'bad' | 'off';

export interface Graph {
  readonly nodes: readonly MapNode[];
  readonly edges: readonly MapEdge[];
}

/** From which round trip on a link counts as slow, in milliseconds. */
export const slowMs = 100;

export function edgeTone({ phase }: Pick<Peering, 'phase'>, { state, rtt }: Link): EdgeTone {
  if (phase === 'Failed' || (phase === 'Ready' && state === 'Error')) return 'bad';
  if (phase === 'Degraded') return 'warn';
  if (phase !== 'Ready' || state === 'Connecting') return 'busy';
  if (state === 'none' || state === 'Unknown') return 'off';
  return rtt !== undefined && rtt >= slowMs ? 'slow' : 'good';
}

/** The more bytes per second, the wider; not measured is as wide as idle. */
export const edgeWidth = (rate = 0): number =>
  rate < 10e3 ? 1.5 : rate < 100e3 ? 2.5 : rate < 1e6 ? 3.5 : rate < 10e6 ? 5 : 7;

const radiusOf = (cpu: number): number => 9 + Math.min(9, Math.max(0, Math.log2(Math.max(1, cpu / 1e9))));

const ends = ({ consumer, provider, across }: Peering): readonly [string, string] => [
  across?.side === 'provider' ? `${across.peerTenant}/${consumer}` : consumer,
  across?.side === 'consumer' ? `${across.peerTenant}/${provider}` : provider,
];

export function graphOf(clusters: Iterable<Cluster>, peerings: Iterable<Peering>): Graph {
  const nodes = new Map<string, MapNode>();
  for (const cluster of clusters) {
    if (cluster.state !== 'joined') continue;
    const { name, online, labels, nodes: count } = cluster;
    nodes.set(name, {
      id: name,
      kind: online ? 'on' : 'away',
      radius: radiusOf(amount(cluster.allocatable, 'cpu')),
      words: `${name}, ${online ? 'online' : 'away'}, ${count} nodes`,
      text: [name, online ? 'online' : 'away', ...labelTexts(labels)].join(' ').toLowerCase(),
    });
  }
  const shown = [...peerings].filter(({ phase }) => phase !== 'Gone');
  const pairs = new Set(shown.map((peering) => ends(peering).join('>')));
  const edges = shown.map((peering): MapEdge => {
    const [from, to] = ends(peering);
    for (const id of [from, to]) {
      if (nodes.has(id)) continue;
      const words = `${id}, of another tenant`;
      nodes.set(id, { id, kind: 'foreign', radius: 9, words, text: id.toLowerCase() });
    }
    const link = linkOf(peering);
    return {
      id: peering.id,
      from,
      to,
      tone: edgeTone(peering, link),
      width: edgeWidth(link.rate),
      bent: pairs.has(`${to}>${from}`),
      words: `${pairOf(peering)}, ${peering.phase}, link ${linkText(peering)}`,
    };
  });
  return { nodes: [...nodes.values()], edges };
}

/** Changes when nodes or edges come or go: then the layout goes on. */
export const topologyOf = ({ nodes, edges }: Graph): string =>
  `${nodes
    .map(({ id }) => id)
    .sort()
    .join()}|${edges
    .map(({ from, to }) => `${from}>${to}`)
    .sort()
    .join()}`;
