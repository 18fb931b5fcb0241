/** The pings of Liqo's gateways, byte for byte (reference 5.5): JSON in one UDP datagram, answered with the same time stamp. */
import { rangeProblem } from '#shared/domain/cidr.ts';

export interface PingMessage {
  /** Of the cluster that is pinged; only echoed, never checked. */
  readonly clusterID: string;
  readonly msgType: 'PING' | 'PONG';
  /** RFC 3339 with up to nanoseconds. Only the sender reads it, to match the answer with its ping. */
  readonly timeStamp: string;
  /** An Isthmus extension, in some pings: the ranges that the sender's cluster really has. Liqo ignores it. */
  readonly ranges?: AnnouncedRanges;
}

export interface AnnouncedRanges {
  readonly pod: readonly string[];
  readonly external: readonly string[];
}

/** A cluster with more of a kind announces none. */
export const mostAnnounced = 8;

/** Liqo reads no more of a datagram than this, and so do we: everything behind it may only be padding. */
export const maxPingBytes = 1024;

/** Undefined: no ping. */
export function parsePing(datagram: Uint8Array): PingMessage | undefined {
  let value: unknown;
  try {
    value = JSON.parse(new TextDecoder('utf-8', { fatal: true }).decode(datagram.subarray(0, maxPingBytes)));
  } catch {
    return undefined;
  }
  if (typeof value !== 'object' || value === null) return undefined;
  const { clusterID, msgType, timeStamp, ranges } = value as Record<string, unknown>;
  if (typeof clusterID !== 'string' || typeof timeStamp !== 'string') return undefined;
  if (msgType === 'PONG') return { clusterID, msgType, timeStamp };
  const announced = parseRanges(ranges);
  return msgType === 'PING' ? { clusterID, msgType, timeStamp, ...(announced && { ranges: announced }) } : undefined;
}

/** Undefined: none were announced, or not in a reliable form. */
function parseRanges(value: unknown): AnnouncedRanges | undefined {
  if (typeof value !== 'object' || value === null) return undefined;
  const { pod, external } = value as Record<string, unknown>;
  return isRanges(pod) && isRanges(external) ? { pod, external } : undefined;
}

const isRanges = (list: unknown): list is readonly string[] =>
  Array.isArray(list) &&
  list.length > 0 &&
  list.length <= mostAnnounced &&
  list.every((range) => typeof range === 'string' && rangeProblem(range) === undefined);

/**
 * Padded with blanks to `bytes`, which JSON permits behind a value: so one ping asks whether a packet of that size passes. Isthmus pads the
 * answer alike and so tests both directions; Liqo answers, too, without padding.
 */
export const encodePing = ({ clusterID, msgType, timeStamp, ranges }: PingMessage, bytes = 0): Uint8Array =>
  new TextEncoder().encode(JSON.stringify({ clusterID, msgType, timeStamp, ranges }).padEnd(bytes, ' '));

/** Undefined for a PONG: answers are not answered. */
export const answerTo = ({ clusterID, msgType, timeStamp }: PingMessage): PingMessage | undefined =>
  msgType === 'PING' ? { clusterID, msgType: 'PONG', timeStamp } : undefined;

/**
 * A time stamp that no other ping of this process has. Its last digit is never 0: Liqo parses and prints the time again, and Go drops
 * trailing zeros of a second's fraction.
 */
export function timeStampOf(nowMs: number, serial: number): string {
  const micro = String((serial % 100_000) * 10 + 1).padStart(6, '0');
  return `${new Date(nowMs).toISOString().slice(0, 23)}${micro}Z`;
}
