/** Identifiers that sort by time: 48 bits of time, then 80 random bits that only grow within a millisecond. */
import type { Ids } from '#shared/ports/ids.ts';

/** Crockford's base32, lower case: sorts like the numbers it stands for. */
const alphabet = '0123456789abcdefghjkmnpqrstvwxyz';
const randomBits = 80n;
const characters = 26;

/** `random` must be cryptographically strong; what it gives belongs to the caller. */
export function timeOrderedIds(now: () => number, random: (length: number) => Uint8Array): Ids {
  let last = 0n;
  return {
    next(prefix) {
      const fresh =
        (BigInt(now()) << randomBits) | random(10).reduce((sum, byte) => (sum << 8n) | BigInt(byte), 0n as bigint);
      // A clock that stands still or goes back must not break the order.
      last = fresh > last ? fresh : last + 1n;
      return `${prefix}_${encode(last)}`;
    },
    bytes: (length) => new Uint8Array(random(length)),
  };
}

function encode(value: bigint): string {
  let text = '';
  for (let rest = value; text.length < characters; rest >>= 5n) text = alphabet[Number(rest & 31n)] + text;
  return text;
}
