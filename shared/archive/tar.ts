/** Writes and reads tar files (ustar): the same entries always give the same bytes. */
import { AppError } from '#shared/errors/app-error.ts';

export interface TarEntry {
  readonly name: string;
  readonly mode: number;
  readonly kind: 'file' | 'directory' | 'link';
  readonly content?: Uint8Array;
  readonly target?: string;
}

const block = 512;
const kinds = { file: '0', link: '2', directory: '5' } as const;

/** The ustar prefix field takes the leading directories of a name that does not fit into 100 bytes. */
function splitName(name: string): { readonly prefix: string; readonly rest: string } {
  if (Buffer.byteLength(name) <= 100) return { prefix: '', rest: name };
  for (let cut = name.indexOf('/'); cut > 0; cut = name.indexOf('/', cut + 1)) {
    const [prefix, rest] = [name.slice(0, cut), name.slice(cut + 1)];
    if (rest !== '' && Buffer.byteLength(rest) <= 100 && Buffer.byteLength(prefix) <= 155) return { prefix, rest };
  }
  throw new AppError('invalid_input', `the path ${JSON.stringify(name)} is too long for a tar header`);
}

function header(entry: TarEntry): Buffer {
  const bytes = Buffer.alloc(block);
  const octal = (value: number, at: number, width: number): void => {
    bytes.write(`${value.toString(8).padStart(width - 1, '0')}\0`, at, 'latin1');
  };
  const { prefix, rest } = splitName(entry.name);
  if (entry.target !== undefined && Buffer.byteLength(entry.target) > 100) {
    throw new AppError('invalid_input', `the link target ${JSON.stringify(entry.target)} is longer than 100 bytes`);
  }
  bytes.write(rest, 0, 'utf8');
  octal(entry.mode, 100, 8);
  octal(0, 108, 8); // owner
  octal(0, 116, 8); // group
  octal(entry.content?.length ?? 0, 124, 12);
  octal(0, 136, 12); // time
  bytes.write('        ', 148, 'latin1'); // the checksum counts its own field as spaces
  bytes.write(kinds[entry.kind], 156, 'latin1');
  bytes.write(entry.target ?? '', 157, 'utf8');
  bytes.write('ustar\0' + '00', 257, 'latin1');
  bytes.write(prefix, 345, 'utf8');
  const sum = bytes.reduce((total, byte) => total + byte, 0);
  bytes.write(`${sum.toString(8).padStart(6, '0')}\0 `, 148, 'latin1');
  return bytes;
}

export function writeTar(entries: readonly TarEntry[]): Buffer {
  const parts: Uint8Array[] = [];
  for (const entry of entries) {
    const content = entry.content ?? new Uint8Array();
    parts.push(header(entry), content, Buffer.alloc((block - (content.length % block)) % block));
  }
  parts.push(Buffer.alloc(2 * block));
  return Buffer.concat(parts);
}

/** The regular files of a tar as `writeTar` writes it, by name. */
export function readTar(tar: Buffer): Map<string, Buffer> {
  const files = new Map<string, Buffer>();
  const field = (at: number, width: number): string => tar.toString('utf8', at, at + width).replace(/\0.*$/s, '');
  for (let at = 0; at + block <= tar.length && tar[at] !== 0; ) {
    const size = Number.parseInt(field(at + 124, 12), 8);
    if (!Number.isSafeInteger(size)) throw new AppError('invalid_input', `no tar file: no size at byte ${at + 124}`);
    const prefix = field(at + 345, 155);
    const name = `${prefix === '' ? '' : `${prefix}/`}${field(at, 100)}`;
    const start = at + block;
    if (start + size > tar.length) throw new AppError('invalid_input', `the tar file ends within ${name}`);
    if (field(at + 156, 1) === kinds.file) files.set(name, tar.subarray(start, start + size));
    at = start + Math.ceil(size / block) * block;
  }
  return files;
}
