/** Reads one HTTP/1.1 answer (RFC 9112) as it comes, whole or in pieces, until it is complete. Throws `SyntaxError` on what is no answer. */
import { constants } from 'node:buffer';

import type { AnswerBounds } from './answer-bounds.ts';

export type AnswerHeaders = Readonly<Record<string, string>>;

type Part = 'head' | 'sized' | 'chunk size' | 'chunk' | 'chunk end' | 'trailers' | 'until closed' | 'complete';

/** Of a head, or a line between chunks. */
const longestLine = 64 * 1024;
/** Nothing longer can be made a text of. */
const longestBody = constants.MAX_STRING_LENGTH;
const lineEnd = '\r\n';
const headEnd = '\r\n\r\n';

export class ResponseParser {
  /** 0 until the head has come. */
  status = 0;
  /** In lower case; those that come twice are joined by commas. */
  headers: AnswerHeaders = {};
  /** The connection may carry another exchange, once this answer is complete. */
  keepsOpen = true;
  #part: Part = 'head';
  /** Bytes that are to come of the body, or of the chunk. */
  #left = 0;
  /** How much longer the body may get. */
  #room = longestBody;
  /** Taken of `#bounds`. */
  #taken = 0;
  readonly #bounds: AnswerBounds | undefined;
  readonly #body: Buffer[] = [];
  /** The beginning of a line whose end has not come. */
  #unfinished: Buffer | undefined;

  constructor(bounds?: AnswerBounds) {
    this.#bounds = bounds;
  }

  get isComplete(): boolean {
    return this.#part === 'complete';
  }

  /** The body, as UTF-8. */
  text(): string {
    const [only] = this.#body;
    if (only === undefined) return '';
    return (this.#body.length === 1 ? only : Buffer.concat(this.#body)).toString('utf8');
  }

  /** The answer has been read, or is given up: what it took is free again. */
  release(): void {
    this.#bounds?.give(this.#taken);
    this.#taken = 0;
  }

  push(piece: Buffer): void {
    const bytes = this.#unfinished === undefined ? piece : Buffer.concat([this.#unfinished, piece]);
    this.#unfinished = undefined;
    let at = 0;
    while (at < bytes.length && this.#part !== 'complete') {
      const next = this.#read(bytes, at);
      if (next === undefined) {
        if (bytes.length - at > longestLine) throw new SyntaxError('an HTTP answer with a line too long');
        this.#unfinished = bytes.subarray(at);
        return;
      }
      at = next;
    }
    // Bytes after the end of the answer: the connection is out of step.
    if (at < bytes.length) this.keepsOpen = false;
  }

  /** The connection has ended; false: the answer broke off. */
  end(): boolean {
    this.keepsOpen = false;
    if (this.#part === 'until closed') this.#part = 'complete';
    return this.isComplete;
  }

  /** Where to go on, or undefined: more has to come first. */
  #read(bytes: Buffer, at: number): number | undefined {
    switch (this.#part) {
      case 'sized':
      case 'chunk': {
        const end = Math.min(bytes.length, at + this.#left);
        this.#body.push(bytes.subarray(at, end));
        this.#left -= end - at;
        if (this.#left === 0) this.#part = this.#part === 'sized' ? 'complete' : 'chunk end';
        return end;
      }
      case 'until closed':
        this.#makeRoom(bytes.length - at);
        this.#body.push(bytes.subarray(at));
        return bytes.length;
      case 'head': {
        const end = bytes.indexOf(headEnd, at);
        if (end < 0) return undefined;
        this.#head(bytes.toString('latin1', at, end));
        return end + headEnd.length;
      }
      default: {
        const end = bytes.indexOf(lineEnd, at);
        if (end < 0) return undefined;
        this.#line(bytes.toString('latin1', at, end));
        return end + lineEnd.length;
      }
    }
  }

  #makeRoom(bytes: number): void {
    this.#bounds?.checkAnswer(this.#taken + bytes);
    this.#bounds?.take(bytes);
    this.#taken += bytes;
    this.#room -= bytes;
    if (this.#room < 0) throw new SyntaxError(`an HTTP answer of more than ${longestBody >> 20} MiB`);
  }

  #line(line: string): void {
    if (this.#part === 'chunk end') {
      if (line !== '') throw new SyntaxError('an HTTP answer with a chunk longer than it says');
      this.#part = 'chunk size';
    } else if (this.#part === 'chunk size') {
      const size = /^([0-9a-f]{1,12})[ \t]*(?:;.*)?$/i.exec(line)?.[1];
      if (size === undefined) throw new SyntaxError(`an HTTP answer with a chunk of the size ${JSON.stringify(line)}`);
      this.#left = Number.parseInt(size, 16);
      this.#makeRoom(this.#left);
      this.#part = this.#left === 0 ? 'trailers' : 'chunk';
    } else if (line === '') this.#part = 'complete';
  }

  #head(text: string): void {
    const [first = '', ...lines] = text.split(lineEnd);
    const [, minor, status] = /^HTTP\/1\.([01]) (\d{3})(?: |$)/.exec(first) ?? [];
    if (status === undefined) throw new SyntaxError(`no HTTP answer: ${JSON.stringify(first.slice(0, 100))}`);
    // After an informational answer (1xx) the final one follows.
    if (status.startsWith('1')) {
      if (status === '101') throw new SyntaxError('an HTTP answer in another protocol');
      return;
    }
    this.status = Number(status);
    this.headers = headersOf(lines);
    const { connection = '', 'transfer-encoding': coding, 'content-length': length } = this.headers;
    this.keepsOpen = minor === '1' && !/(?:^|[\s,])close(?:$|[\s,])/i.test(connection);
    if (this.status === 204 || this.status === 304) this.#part = 'complete';
    else if (coding !== undefined) {
      if (coding.toLowerCase() !== 'chunked') throw new SyntaxError(`an HTTP answer in the coding ${coding}`);
      this.#part = 'chunk size';
    } else if (length === undefined) this.#part = 'until closed';
    else {
      if (!/^\d{1,15}$/.test(length)) throw new SyntaxError(`an HTTP answer of the length ${length}`);
      this.#left = Number(length);
      this.#makeRoom(this.#left);
      this.#part = this.#left === 0 ? 'complete' : 'sized';
    }
  }
}

function headersOf(lines: readonly string[]): AnswerHeaders {
  const headers: Record<string, string> = {};
  for (const line of lines) {
    const colon = line.indexOf(':');
    if (colon < 1) throw new SyntaxError(`an HTTP answer with the header ${JSON.stringify(line.slice(0, 100))}`);
    const name = line.slice(0, colon).toLowerCase();
    const value = line.slice(colon + 1).trim();
    const before = Object.hasOwn(headers, name) ? headers[name] : undefined;
    headers[name] = before === undefined || before === value ? value : `${before}, ${value}`;
  }
  return headers;
}
