/** The pings of Liqo's gateways, byte for byte (reference 5.5): JSON in one UDP datagram, answered with the same time stamp. */

export interface PingMessage {
  /** Of the cluster that is pinged; only echoed, never checked. */
  readonly clusterID: string;
  readonly msgType: 'PING' | 'PONG';
  /** RFC 3339 with up to nanoseconds; for the sender alone, who finds his ping again by it. */
  readonly timeStamp: string;
}

/** Liqo reads no more of a datagram than this, and so do we: what follows may only be padding. */
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
  const { clusterID, msgType, timeStamp } = value as Record<string, unknown>;
  if (typeof clusterID !== 'string' || typeof timeStamp !== 'string') return undefined;
  return msgType === 'PING' || msgType === 'PONG' ? { clusterID, msgType, timeStamp } : undefined;
}

/**
 * Padded with blanks to `bytes`, which JSON permits behind a value: so one ping asks whether a packet of that size passes. Isthmus pads the
 * answer alike and so tests both directions; Liqo answers, too, without padding.
 */
export const encodePing = ({ clusterID, msgType, timeStamp }: PingMessage, bytes = 0): Uint8Array =>
  new TextEncoder().encode(JSON.stringify({ clusterID, msgType, timeStamp }).padEnd(bytes, ' '));

/** Undefined for a PONG: nobody answers answers. */
export const answerTo = (message: PingMessage): PingMessage | undefined =>
  message.msgType === 'PING' ? { ...message, msgType: 'PONG' } : undefined;

/**
 * A time stamp that no other ping of this process has. Its last digit is never 0: Liqo parses and prints the time again, and Go drops
 * trailing zeros of a second's fraction.
 */
export function timeStampOf(nowMs: number, serial: number): string {
  const micro = String((serial % 100_000) * 10 + 1).padStart(6, '0');
  return `${new Date(nowMs).toISOString().slice(0, 23)}${micro}Z`;
}
