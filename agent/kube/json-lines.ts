/** Splits a byte stream into JSON documents of an API server, one a line, without their managedFields. Every byte is copied at most once, however the stream is cut. */
import { withoutManagedFields } from './managed-fields.ts';

const newline = 0x0a;

export class JsonLines {
  #partial: Buffer[] = [];
  readonly #emit: (document: unknown) => void;

  constructor(emit: (document: unknown) => void) {
    this.#emit = emit;
  }

  /** Throws `SyntaxError` when a complete line is not JSON. */
  push(chunk: Buffer): void {
    let from = 0;
    for (let at = chunk.indexOf(newline); at >= 0; at = chunk.indexOf(newline, from)) {
      this.#line(chunk.subarray(from, at));
      from = at + 1;
    }
    if (from < chunk.length) this.#partial.push(chunk.subarray(from));
  }

  #line(end: Buffer): void {
    const line = this.#partial.length === 0 ? end : Buffer.concat([...this.#partial, end]);
    this.#partial = [];
    if (line.length > 0) this.#emit(JSON.parse(withoutManagedFields(line.toString('utf8'))));
  }
}
