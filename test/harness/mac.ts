/** Link-layer addresses that a machine keeps when it boots again. */
import { createHash } from 'node:crypto';

/** The same for the same name: locally administered, unicast. */
export function macOf(name: string): string {
  const [first = 0, ...rest] = createHash('sha256').update(name).digest().subarray(0, 6);
  return [(first & 0xfc) | 0x02, ...rest].map((byte) => byte.toString(16).padStart(2, '0')).join(':');
}
