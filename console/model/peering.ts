/** What the pages say about a peering: its state in one word, its link, what it waits for. */
import type { Peering } from '#shared/api-client/broker-api.ts';
import { latencyMs } from '#shared/domain/latency.ts';
import { rateText } from './series.ts';

export type Tone = 'good' | 'busy' | 'warn' | 'bad' | 'off';

const tones: Readonly<Record<Peering['phase'], Tone>> = {
  Proposed: 'busy',
  Connecting: 'busy',
  Authenticating: 'busy',
  Negotiating: 'busy',
  Ready: 'good',
  Degraded: 'warn',
  Unpeering: 'busy',
  Gone: 'off',
  Failed: 'bad',
};
export const toneOf = ({ phase }: Pick<Peering, 'phase'>): Tone => tones[phase];

export interface Link {
  readonly state: 'Connected' | 'Connecting' | 'Error' | 'Unknown' | 'none';
  /** Milliseconds; absent: not measured. */
  readonly rtt?: number;
  /** Percent. */
  readonly loss?: number;
  /** Bytes per second, both ways together. */
  readonly rate?: number;
}

const worst = ['Error', 'Connecting', 'Unknown', 'Connected'] as const;

/** As the end sees it that sees less. */
export function linkOf({ network }: Pick<Peering, 'network'>): Link {
  const link = network?.link;
  if (link === undefined) return { state: 'none' };
  const ends = [link.consumer, link.provider];
  const state = worst.find((each) => ends.some(({ status }) => status === each)) ?? 'Unknown';
  const rtts = ends.map(({ latency }) => latencyMs(latency)).filter((ms) => ms !== undefined);
  const rates = ends.flatMap(({ throughput }) => (throughput ? throughput.received + throughput.sent : []));
  const losses = ends.map(({ packetLoss }) => packetLoss).filter((loss) => loss !== undefined);
  return {
    state,
    ...(rtts.length > 0 && { rtt: Math.max(...rtts) }),
    ...(losses.length > 0 && { loss: Math.max(...losses) }),
    ...(rates.length > 0 && { rate: Math.max(...rates) }),
  };
}

export const linkText = (peering: Pick<Peering, 'network'>): string => {
  const { state, rtt, loss, rate } = linkOf(peering);
  const more = [
    rtt === undefined ? '' : `${rtt < 10 ? rtt.toFixed(1) : Math.round(rtt)} ms`,
    loss ? `${loss} % lost` : '',
    rate === undefined ? '' : rateText(rate),
  ];
  return [state, ...more.filter((text) => text !== '')].join(', ');
};

/** Nothing more happens by itself. */
export const isSettled = ({ phase }: Pick<Peering, 'phase'>): boolean =>
  phase === 'Ready' || phase === 'Failed' || phase === 'Gone';

export const pairOf = ({ consumer, provider }: Pick<Peering, 'consumer' | 'provider'>): string =>
  `${consumer} → ${provider}`;
