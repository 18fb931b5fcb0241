/** What a device has carried so far. */
import type { Netns } from '../../../harness/netns.ts';

export interface Carried {
  readonly bytes: number;
  /** A segment of many packets counts once. */
  readonly packets: number;
}

export async function carried(netns: Netns, device: string, way: 'rx' | 'tx'): Promise<Carried> {
  const text = await netns.exec('ip', '-j', '-s', 'link', 'show', 'dev', device);
  const [link] = JSON.parse(text) as { stats64: Record<'rx' | 'tx', Carried> }[];
  return link?.stats64[way] ?? { bytes: 0, packets: 0 };
}
