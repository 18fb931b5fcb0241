/** Splits a byte stream into JSON documents of an API server, one a line, without their managedFields. Every byte is copied at most once, however the stream is cut. */
import type { AnswerBounds } from './answer-bounds.ts';
import { withoutManagedFields } from './managed-fields.ts';

const newline = 0x0a;
/** No API server stores an object whose text comes near to this. */
const longestLine = 64 << 20;

export class DocumentStream {
  #partial: Buffer[] = [];
  #partialBytes = 0;
  readonly #emit: (document: unknown) => void;

  readonly #bounds: AnswerBounds | undefined;

  constructor(emit: (document: unknown) => void, bounds?: AnswerBounds) {
    this.#emit = emit;
    this.#bounds = bounds;
  }

  /** Nothing more comes: what an unfinished line took is free again. */
  release(): void {
    this.#bounds?.give(this.#partialBytes);
    this.#partial = [];
    this.#partialBytes = 0;
  }

  /** Throws `SyntaxError` when a complete line is not JSON, and when one does not end. */
  push(chunk: Buffer): void {
    let from = 0;
    for (let at = chunk.indexOf(newline); at >= 0; at = chunk.indexOf(newline, from)) {
      this.#line(chunk.subarray(from, at));
      from = at + 1;
    }
    if (from === chunk.length) return;
    const bytes = chunk.length - from;
    this.#bounds?.checkObject(this.#partialBytes + bytes);
    this.#bounds?.take(bytes);
    this.#partial.push(chunk.subarray(from));
    this.#partialBytes += bytes;
    if (this.#partialBytes > longestLine) throw new SyntaxError(`a line of more than ${longestLine >> 20} MiB`);
  }

  #line(end: Buffer): void {
    this.#bounds?.checkObject(this.#partialBytes + end.length);
    const line = this.#partial.length === 0 ? end : Buffer.concat([...this.#partial, end]);
    this.release();
    if (line.length > 0) this.#emit(JSON.parse(withoutManagedFields(line.toString('utf8'))));
  }
}
