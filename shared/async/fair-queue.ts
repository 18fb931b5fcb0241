/** Fair queue: serves its owners round robin, so that none waits for another's backlog. When full, the owner with the longest backlog loses its last item. */
export class FairQueue<T> {
  readonly #room: number;
  /** Whose turn it is first comes first. */
  readonly #lines = new Map<string, Set<T>>();
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
  offer(whose: string, thing: T): boolean {
    if (this.isFull && !this.#makeRoom(whose)) return false;
    this.add(whose, thing);
    return true;
  }

  /** Whether there is room or not. What waits already stays where it is. */
  add(whose: string, thing: T): void {
    if (this.#owners.has(thing)) return;
    this.#owners.set(thing, whose);
    const line = this.#lines.get(whose);
    if (line === undefined) this.#lines.set(whose, new Set([thing]));
    else line.add(thing);
  }

  /** Of whose turn it is, what came first. */
  first(): T | undefined {
    const [line] = this.#lines.values();
    const [thing] = line ?? [];
    return thing;
  }

  /** The next one has his turn. */
  delete(thing: T): void {
    const whose = this.#owners.get(thing);
    const line = whose === undefined ? undefined : this.#lines.get(whose);
    if (whose === undefined || line === undefined) return;
    this.#owners.delete(thing);
    line.delete(thing);
    if (line.size > 0 && this.#lines.size === 1) return;
    this.#lines.delete(whose);
    if (line.size > 0) this.#lines.set(whose, line);
  }

  /** By whose turn it is, then in the order of coming. */
  *[Symbol.iterator](): Generator<T> {
    for (const line of this.#lines.values()) yield* line;
  }

  #makeRoom(whose: string): boolean {
    let longest: [string, Set<T>] | undefined;
    for (const one of this.#lines) if (longest === undefined || one[1].size > longest[1].size) longest = one;
    if (longest === undefined) return false;
    const [who, line] = longest;
    if (line.size <= (this.#lines.get(whose)?.size ?? 0)) return false;
    const newest = [...line].at(-1);
    if (newest === undefined) return false;
    line.delete(newest);
    this.#owners.delete(newest);
    if (line.size === 0) this.#lines.delete(who);
    return true;
  }
}
