/**
 * What one API server that is not ours may take of the memory of this process. It counts bytes of text; objects made of it take two to three times as many.
 * Each connection to a peer has one, so that a peer that answers without end costs its own requests and caches, and no other's.
 */
import { AppError } from '#shared/errors/app-error.ts';

export interface BoundSizes {
  /** Of one answer. Lists are asked for in smaller pages when one does not fit. */
  readonly answerBytes: number;
  /** Of one object. etcd takes 1.5 MiB. */
  readonly objectBytes: number;
  /** Of all answers that are on their way at a time. */
  readonly inFlightBytes: number;
  /** Of everything that caches keep, as JSON; also of one list that is not cached. */
  readonly keptBytes: number;
}

const mebibyte = 1024 * 1024;
/** Of one peer, in a container of 512 MiB. */
const peerSizes: BoundSizes = {
  answerBytes: 16 * mebibyte,
  objectBytes: 4 * mebibyte,
  inFlightBytes: 32 * mebibyte,
  keptBytes: 64 * mebibyte,
};

export class AnswerBounds {
  readonly sizes: BoundSizes;
  /** What the server is called in errors. */
  readonly #server: string;
  #inFlight = 0;
  #kept = 0;

  constructor(server: string, sizes: Partial<BoundSizes> = {}) {
    this.#server = server;
    this.sizes = { ...peerSizes, ...sizes };
  }

  /** More bytes of an answer. Throws, and takes nothing, where they do not fit. */
  take(bytes: number): void {
    if (this.#inFlight + bytes > this.sizes.inFlightBytes)
      throw this.tooLarge('all its answers at a time', this.sizes.inFlightBytes);
    this.#inFlight += bytes;
  }

  give(bytes: number): void {
    this.#inFlight -= bytes;
  }

  /** Caches keep so many bytes more than before, or fewer. Throws, and counts nothing, where they do not fit. */
  keep(bytes: number): void {
    this.checkKept(bytes);
    this.#kept += bytes;
  }

  checkKept(bytes: number): void {
    if (bytes > 0 && this.#kept + bytes > this.sizes.keptBytes)
      throw this.tooLarge('all its objects', this.sizes.keptBytes);
  }

  checkAnswer(bytes: number): void {
    if (bytes > this.sizes.answerBytes) throw this.tooLarge('an answer', this.sizes.answerBytes);
  }

  checkObject(bytes: number): void {
    if (bytes > this.sizes.objectBytes) throw this.tooLarge('an object', this.sizes.objectBytes);
  }

  tooLarge(what: string, most: number): AppError {
    const message = `${this.#server} sends too much: of ${what} this cluster takes at most ${most} bytes`;
    return new AppError('kube_failed', message, { detail: { tooLarge: true } });
  }
}

export const isTooLarge = (error: unknown): boolean => error instanceof AppError && error.detail.tooLarge === true;
