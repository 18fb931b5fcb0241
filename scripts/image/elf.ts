/** What image building needs of ELF files (64 bit, little endian): the libraries that a program links to, and the program without its symbols. */
import { AppError } from '#shared/errors/app-error.ts';

export interface Linkage {
  /** The dynamic loader's absolute path; undefined for a library or a static program. */
  readonly interpreter?: string;
  /** Names such as `libc.so.6`. */
  readonly needed: readonly string[];
}

interface Segment {
  readonly type: number;
  readonly offset: number;
  readonly address: number;
  readonly size: number;
}

const [loaded, dynamic, interpreterType] = [1, 2, 3];
const [neededTag, stringTableTag] = [1, 5];

const number = (bytes: Buffer, at: number): number => Number(bytes.readBigUInt64LE(at));

function segmentsOf(bytes: Buffer): readonly Segment[] {
  if (bytes.length < 64 || bytes.readUInt32BE(0) !== 0x7f454c46 || bytes[4] !== 2 || bytes[5] !== 1) {
    throw new AppError('invalid_input', 'no 64-bit little-endian ELF file');
  }
  const [start, size, count] = [number(bytes, 32), bytes.readUInt16LE(54), bytes.readUInt16LE(56)];
  return Array.from({ length: count }, (_, i) => {
    const at = start + i * size;
    return {
      type: bytes.readUInt32LE(at),
      offset: number(bytes, at + 8),
      address: number(bytes, at + 16),
      size: number(bytes, at + 32),
    };
  });
}

const textAt = (bytes: Buffer, at: number): string => bytes.toString('latin1', at, bytes.indexOf(0, at));

export const isElf = (bytes: Buffer): boolean => bytes.length >= 64 && bytes.readUInt32BE(0) === 0x7f454c46;

/** What `ldd` would resolve, one level deep, for any architecture. */
export function linkageOf(bytes: Buffer): Linkage {
  const segments = segmentsOf(bytes);
  const interpreter = segments.find(({ type }) => type === interpreterType);
  const named = interpreter === undefined ? {} : { interpreter: textAt(bytes, interpreter.offset) };
  const table = segments.find(({ type }) => type === dynamic);
  if (table === undefined) return { ...named, needed: [] };
  const entries = Array.from({ length: table.size / 16 }, (_, i) => {
    const at = table.offset + i * 16;
    return { tag: number(bytes, at), value: number(bytes, at + 8) };
  });
  const strings = entries.find(({ tag }) => tag === stringTableTag)?.value;
  const home = segments.find(
    ({ type, address, size }) =>
      type === loaded && strings !== undefined && strings >= address && strings < address + size,
  );
  if (strings === undefined || home === undefined) return { ...named, needed: [] };
  const start = home.offset + strings - home.address;
  const needed = entries.filter(({ tag }) => tag === neededTag).map(({ value }) => textAt(bytes, start + value));
  return { ...named, needed };
}

/**
 * The program without symbols and debugging information: all that follows its last loaded segment goes, and the table of sections with it,
 * which only debuggers and linkers read. The result depends on no binutils of this machine, and it works for every architecture.
 */
export function withoutSymbols(bytes: Buffer): Buffer {
  const segments = segmentsOf(bytes);
  const headers = number(bytes, 32) + bytes.readUInt16LE(54) * bytes.readUInt16LE(56);
  const end = Math.max(headers, ...segments.map(({ offset, size }) => offset + size));
  const stripped = Buffer.from(bytes.subarray(0, end));
  stripped.writeBigUInt64LE(0n, 40); // offset of the sections
  stripped.writeUInt16LE(0, 60); // their number
  stripped.writeUInt16LE(0, 62); // the section with their names
  return stripped;
}
