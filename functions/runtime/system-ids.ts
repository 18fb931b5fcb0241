/** The broker's identifiers: 48 bits of time and 80 random bits, in base32 that sorts by time; growing within a process. */
import { randomBytes } from 'node:crypto';
import type { Ids } from '#shared/ports/ids.ts';

const alphabet = '0123456789abcdefghjkmnpqrstvwxyz';
const length = 26;

const base32 = (value: bigint): string =>
  Array.from({ length }, (_, i) => alphabet[Number((value >> BigInt(5 * (length - 1 - i))) & 31n)]).join('');

export function createSystemIds(now: () => number): Ids {
  let last = 0n;
  return {
    next(prefix) {
      const fresh = (BigInt(now()) << 80n) | BigInt(`0x${randomBytes(10).toString('hex')}`);
      // A clock that goes back must not break the order.
      last = fresh > last ? fresh : last + 1n;
      return `${prefix}_${base32(last)}`;
    },
    bytes: (count) => new Uint8Array(randomBytes(count)),
  };
}
