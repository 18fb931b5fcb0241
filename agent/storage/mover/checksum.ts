/** The checksum of a device, by which both sides are compared: rsync calls a block equal that it finds anywhere on the other side. */
import { createHash } from 'node:crypto';
import { createReadStream } from 'node:fs';

export interface Checksum {
  /** From the beginning. */
  readonly bytes: number;
  readonly sha256: string;
}

const pieceBytes = 1_048_576;

/** Of the first `length` bytes, or of all. `onBytes` is told how many have been read. Rejects when `signal` aborts. */
export async function checksumOf(
  file: string,
  onBytes: (bytes: number) => void,
  signal: AbortSignal,
  length = Number.POSITIVE_INFINITY,
): Promise<Checksum> {
  const hash = createHash('sha256');
  let bytes = 0;
  if (length > 0) {
    for await (const piece of createReadStream(file, { highWaterMark: pieceBytes, end: length - 1, signal })) {
      hash.update(piece as Buffer);
      bytes += (piece as Buffer).length;
      onBytes(bytes);
    }
  }
  return { bytes, sha256: hash.digest('hex') };
}
