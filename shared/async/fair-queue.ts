/** A fair queue: round robin over the owners of its items. When it is full, the owner with the most items loses its newest one. */
export class FairQueue<T> {
  readonly #room: number;
  /** In order of turns: the owner that is served next comes first. */
  readonly #queues = new Map<string, Set<T>>();
  readonly #owners = new Map<T, string>();

  constructor(room = Number.POSITIVE_INFINITY) {
    this.#room = room;
  }

  get size(): number {
    return this.#owners.size;
  }

  get isFull(): boolean {
    return this.size >= this.#room;
  }

  /** False: the queue is full, and no owner has more items than this one. */
  offer(owner: string, item: T): boolean {
    if (this.isFull && !this.#makeRoom(owner)) return false;
    this.add(owner, item);
    return true;
  }

  /** Adds even beyond the limit. An item that waits already keeps its place. */
  add(owner: string, item: T): void {
    if (this.#owners.has(item)) return;
    this.#owners.set(item, owner);
    const queue = this.#queues.get(owner);
    if (queue === undefined) this.#queues.set(owner, new Set([item]));
    else queue.add(item);
  }

  /** The first item of the owner that is served next. */
  first(): T | undefined {
    const [queue] = this.#queues.values();
    const [item] = queue ?? [];
    return item;
  }

  /** Removes an item; its owner goes to the end of the round. */
  delete(item: T): void {
    const owner = this.#owners.get(item);
    const queue = owner === undefined ? undefined : this.#queues.get(owner);
    if (owner === undefined || queue === undefined) return;
    this.#owners.delete(item);
    queue.delete(item);
    if (queue.size > 0 && this.#queues.size === 1) return;
    this.#queues.delete(owner);
    if (queue.size > 0) this.#queues.set(owner, queue);
  }

  /** By turn of the owner, then in order of arrival. */
  *[Symbol.iterator](): Generator<T> {
    for (const queue of this.#queues.values()) yield* queue;
  }

  #makeRoom(owner: string): boolean {
    let longest: [string, Set<T>] | undefined;
    for (const one of this.#queues) if (longest === undefined || one[1].size > longest[1].size) longest = one;
    if (longest === undefined) return false;
    const [longestOwner, queue] = longest;
    if (queue.size <= (this.#queues.get(owner)?.size ?? 0)) return false;
    const newest = [...queue].at(-1);
    if (newest === undefined) return false;
    queue.delete(newest);
    this.#owners.delete(newest);
    if (queue.size === 0) this.#queues.delete(longestOwner);
    return true;
  }
}
