/** What a link's report becomes in `Connection.status`, and when that is worth a write. Pure. */
import { timestamp } from '#kube/writes/conditions.ts';
import { latencyText } from '../link/ping/decide.ts';
import type { AnnouncedRanges } from '../link/ping/message.ts';
import type { LinkReport } from '../link/tunnel/run.ts';

export interface ConnectionFields {
  readonly value: string;
  readonly latency: { readonly value: string; readonly timestamp: string };
  readonly mtu: number | null;
  readonly peerEndpoint: string | null;
  readonly lastHandshakeTime: string | null;
  readonly packetLoss: number | null;
  readonly receivedBytes: number | null;
  readonly sentBytes: number | null;
  readonly peerRanges: AnnouncedRanges | null;
}

/** For a merge patch: null takes a field away. */
export const connectionFields = (report: LinkReport, now: number, announced?: AnnouncedRanges): ConnectionFields => ({
  value: report.value,
  latency: { value: latencyText(report.rttMs), timestamp: timestamp(now) },
  mtu: report.mtu ?? null,
  peerEndpoint: report.peerEndpoint ?? null,
  lastHandshakeTime: report.handshakeAt === undefined ? null : timestamp(report.handshakeAt),
  packetLoss: report.packetLoss ?? null,
  receivedBytes: report.receivedBytes ?? null,
  sentBytes: report.sentBytes ?? null,
  peerRanges: announced ?? null,
});

/** Reference 5.5: figures that move all the time are written no more often than this. */
export const figuresEveryMs = 10_000;

export interface Written {
  readonly fields: ConnectionFields;
  readonly at: number;
}

/** Undefined: nothing worth a write now. */
export function worthWriting(
  report: LinkReport,
  last: Written | undefined,
  now: number,
  announced?: AnnouncedRanges,
): ConnectionFields | undefined {
  return last === undefined || now - last.at >= figuresEveryMs || isNews(report, last.fields, announced)
    ? connectionFields(report, now, announced)
    : undefined;
}

/** Asked several times a second, mostly in vain. */
const isNews = (report: LinkReport, known: ConnectionFields, announced: AnnouncedRanges | undefined): boolean =>
  report.value !== known.value ||
  (report.mtu ?? null) !== known.mtu ||
  (report.peerEndpoint ?? null) !== known.peerEndpoint ||
  (announced !== (known.peerRanges ?? undefined) &&
    JSON.stringify(announced ?? null) !== JSON.stringify(known.peerRanges));
