/** Keys with a due time, the earliest first: a binary heap whose outdated entries are skipped when they surface. */
interface Entry {
  readonly key: string;
  readonly at: number;
}

export class DelayHeap {
  #heap: Entry[] = [];
  readonly #dueAt = new Map<string, number>();

  get size(): number {
    return this.#dueAt.size;
  }

  /** A key that is there already moves only forward. */
  add(key: string, at: number): void {
    const known = this.#dueAt.get(key);
    if (known !== undefined && known <= at) return;
    this.#dueAt.set(key, at);
    this.#heap.push({ key, at });
    this.#up(this.#heap.length - 1);
    if (this.#heap.length > 64 && this.#heap.length > 2 * this.#dueAt.size) this.#compact();
  }

  delete(key: string): void {
    this.#dueAt.delete(key);
  }

  earliest(): number | undefined {
    this.#dropOutdated();
    return this.#heap[0]?.at;
  }

  takeDue(now: number): string[] {
    const due: string[] = [];
    for (let at = this.earliest(); at !== undefined && at <= now; at = this.earliest()) {
      const entry = this.#pop();
      if (entry === undefined) break;
      this.#dueAt.delete(entry.key);
      due.push(entry.key);
    }
    return due;
  }

  #dropOutdated(): void {
    for (let top = this.#heap[0]; top !== undefined && this.#dueAt.get(top.key) !== top.at; top = this.#heap[0]) {
      this.#pop();
    }
  }

  #compact(): void {
    this.#heap = [...this.#dueAt].map(([key, at]) => ({ key, at })).sort((a, b) => a.at - b.at);
  }

  #pop(): Entry | undefined {
    const top = this.#heap[0];
    const last = this.#heap.pop();
    if (last !== undefined && this.#heap.length > 0) {
      this.#heap[0] = last;
      this.#down(0);
    }
    return top;
  }

  #at(index: number): number {
    return this.#heap[index]?.at ?? Number.POSITIVE_INFINITY;
  }

  #swap(a: number, b: number): void {
    const [first, second] = [this.#heap[a], this.#heap[b]];
    if (first === undefined || second === undefined) return;
    this.#heap[a] = second;
    this.#heap[b] = first;
  }

  #up(from: number): void {
    for (let index = from; index > 0; ) {
      const parent = (index - 1) >> 1;
      if (this.#at(parent) <= this.#at(index)) return;
      this.#swap(parent, index);
      index = parent;
    }
  }

  #down(from: number): void {
    for (let index = from; ; ) {
      const left = 2 * index + 1;
      const child = this.#at(left + 1) < this.#at(left) ? left + 1 : left;
      if (this.#at(index) <= this.#at(child)) return;
      this.#swap(index, child);
      index = child;
    }
  }
}
