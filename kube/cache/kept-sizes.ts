/** How much one cache keeps of a server that has bounds. Without bounds, nothing is measured. */
import { type KubeObject, keyOf } from '#shared/domain/kube-object.ts';
import type { AnswerBounds } from '../http/answer-bounds.ts';

export class KeptSizes {
  readonly #bounds: AnswerBounds | undefined;
  /** Bytes by key. */
  #sizes = new Map<string, number>();
  #total = 0;
  /** Of the list that is being read: it takes the place of what is kept. */
  #next = new Map<string, number>();
  #nextTotal = 0;

  constructor(bounds: AnswerBounds | undefined) {
    this.#bounds = bounds;
  }

  startList(): void {
    this.#next = new Map();
    this.#nextTotal = 0;
  }

  /** Throws where the list is more than the server may have kept. */
  listed(object: KubeObject): void {
    if (this.#bounds === undefined) return;
    const [key, bytes] = [keyOf(object), sizeOf(object)];
    // A page may name an object that another had.
    this.#nextTotal += bytes - (this.#next.get(key) ?? 0);
    this.#next.set(key, bytes);
    this.#bounds.checkKept(this.#nextTotal - this.#total);
  }

  endList(): void {
    this.#bounds?.keep(this.#nextTotal - this.#total);
    this.#sizes = this.#next;
    this.#total = this.#nextTotal;
    this.startList();
  }

  /** Throws, and counts nothing, where it does not fit. */
  put(object: KubeObject): void {
    if (this.#bounds === undefined) return;
    const bytes = sizeOf(object);
    const more = bytes - (this.#sizes.get(keyOf(object)) ?? 0);
    this.#bounds.keep(more);
    this.#sizes.set(keyOf(object), bytes);
    this.#total += more;
  }

  remove(key: string): void {
    const bytes = this.#sizes.get(key) ?? 0;
    this.#bounds?.keep(-bytes);
    this.#sizes.delete(key);
    this.#total -= bytes;
  }

  /** Nothing is kept any more. */
  clear(): void {
    this.startList();
    this.endList();
  }
}

const sizeOf = (object: KubeObject): number => JSON.stringify(object).length;
