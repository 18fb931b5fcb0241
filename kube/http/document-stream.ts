/** Splits a byte stream into JSON documents of an API server, one a line, without their managedFields. Every byte is copied at most once, however the stream is cut. */
import { withoutManagedFields } from './managed-fields.ts';

const newline = 0x0a;
/** No API server stores an object whose text comes near to this. */
const longestLine = 64 << 20;

export class DocumentStream {
  #partial: Buffer[] = [];
  #partialBytes = 0;
  readonly #emit: (document: unknown) => void;

  constructor(emit: (document: unknown) => void) {
    this.#emit = emit;
  }

  /** Throws `SyntaxError` when a complete line is not JSON, and when one does not end. */
  push(chunk: Buffer): void {
    let from = 0;
    for (let at = chunk.indexOf(newline); at >= 0; at = chunk.indexOf(newline, from)) {
      this.#line(chunk.subarray(from, at));
      from = at + 1;
    }
    if (from === chunk.length) return;
    this.#partial.push(chunk.subarray(from));
    this.#partialBytes += chunk.length - from;
    if (this.#partialBytes > longestLine) throw new SyntaxError(`a line of more than ${longestLine >> 20} MiB`);
  }

  #line(end: Buffer): void {
    const line = this.#partial.length === 0 ? end : Buffer.concat([...this.#partial, end]);
    this.#partial = [];
    this.#partialBytes = 0;
    if (line.length > 0) this.#emit(JSON.parse(withoutManagedFields(line.toString('utf8'))));
  }
}
