/** The subset of DER that certificate requests need: definite lengths only, and every byte is accounted for. */
import { AppError } from '#shared/errors/app-error.ts';

export const tag = {
  integer: 0x02,
  bitString: 0x03,
  oid: 0x06,
  utf8String: 0x0c,
  printableString: 0x13,
  ia5String: 0x16,
  sequence: 0x30,
  set: 0x31,
  /** [0] constructed: the attributes of a certificate request. */
  context0: 0xa0,
} as const;

export interface DerNode {
  readonly tag: number;
  /** What the tag wraps. */
  readonly content: Uint8Array;
  /** Tag, length and content, as it was signed. */
  readonly raw: Uint8Array;
}

const malformed = (why: string): AppError =>
  new AppError(
    'invalid_input',
    `the certificate request is not valid DER: ${why}; send one made by openssl, Isthmus or liqoctl`,
  );

function readNode(bytes: Uint8Array, offset: number): { node: DerNode; end: number } {
  const first = bytes[offset];
  const length = bytes[offset + 1];
  if (first === undefined || length === undefined) throw malformed('it ends inside a header');
  if ((first & 0x1f) === 0x1f) throw malformed('it has a multi-byte tag');
  let size = length;
  let start = offset + 2;
  if (length & 0x80) {
    const count = length & 0x7f;
    if (count === 0 || count > 3) throw malformed(`a length has ${count} bytes, accepted are 1 to 3`);
    size = 0;
    for (let i = 0; i < count; i++) {
      const next = bytes[start++];
      if (next === undefined) throw malformed('it ends inside a length');
      size = size * 256 + next;
    }
    if (size < 0x80 || size < 256 ** (count - 1)) throw malformed('a length is not minimal');
  }
  const end = start + size;
  if (end > bytes.length) throw malformed('a length points past the end');
  return { node: { tag: first, content: bytes.subarray(start, end), raw: bytes.subarray(offset, end) }, end };
}

/** All nodes that stand one after the other in `bytes`. */
export function readAll(bytes: Uint8Array): DerNode[] {
  const nodes: DerNode[] = [];
  for (let offset = 0; offset < bytes.length; ) {
    const { node, end } = readNode(bytes, offset);
    nodes.push(node);
    offset = end;
  }
  return nodes;
}

/** The single node that fills `bytes`. */
export function readOne(bytes: Uint8Array, expected: number): DerNode {
  const nodes = readAll(bytes);
  const [node] = nodes;
  if (node === undefined || nodes.length !== 1) throw malformed(`expected one element, found ${nodes.length}`);
  return expectTag(node, expected);
}

export function expectTag(node: DerNode | undefined, expected: number): DerNode {
  if (node?.tag !== expected) throw malformed(`expected tag ${expected}, found ${node?.tag ?? 'nothing'}`);
  return node;
}

export function encode(type: number, ...parts: readonly Uint8Array[]): Uint8Array {
  const content = Buffer.concat(parts);
  const size = content.length;
  const length: number[] = [];
  if (size < 0x80) length.push(size);
  else {
    for (let rest = size; rest > 0; rest = Math.floor(rest / 256)) length.unshift(rest % 256);
    length.unshift(0x80 | length.length);
  }
  return Buffer.concat([Uint8Array.of(type, ...length), content]);
}

/** `1.2.840` to its content bytes. */
export function oid(dotted: string): Uint8Array {
  const [first = 0, second = 0, ...rest] = dotted.split('.').map(Number);
  const out: number[] = [first * 40 + second];
  for (const arc of rest) {
    const groups = [arc % 128];
    for (let left = Math.floor(arc / 128); left > 0; left = Math.floor(left / 128)) groups.unshift(128 + (left % 128));
    out.push(...groups);
  }
  return encode(tag.oid, Uint8Array.from(out));
}
