/** A queue of keys: each waits at most once, is with at most one worker, and comes again when it was added meanwhile. */
import { backoffMs, type Random } from '#shared/async/backoff.ts';
import { DelayHeap } from '#shared/async/delay-queue.ts';
import { FairQueue } from '#shared/async/fair-queue.ts';
import type { Clock } from '#shared/ports/clock.ts';

export interface KeyQueueOptions {
  readonly clock: Clock;
  readonly random?: Random;
  readonly backoffBaseMs?: number;
  readonly backoffMaxMs?: number;
  /** The owner of a key in the fair queue: an owner with many waiting keys delays other owners by one key only. Default: one owner for all. */
  readonly ownerOf?: (key: string) => string;
}

export class KeyQueue {
  readonly #clock: Clock;
  readonly #backoff: { readonly baseMs: number; readonly maxMs: number; readonly random: Random };
  readonly #ownerOf: (key: string) => string;
  readonly #ready = new FairQueue<string>();
  readonly #busy = new Set<string>();
  /** Added while busy. */
  readonly #dirty = new Set<string>();
  readonly #failures = new Map<string, number>();
  readonly #delayed = new DelayHeap();
  readonly #takers: ((key: string | undefined) => void)[] = [];
  #nap: { readonly at: number; readonly stop: AbortController } | undefined;
  #closed = false;

  constructor({ clock, random = Math.random, ownerOf, backoffBaseMs = 50, backoffMaxMs = 60_000 }: KeyQueueOptions) {
    this.#clock = clock;
    this.#ownerOf = ownerOf ?? (() => '');
    this.#backoff = { baseMs: backoffBaseMs, maxMs: backoffMaxMs, random };
  }

  /** Keys that wait for a worker, not counting delayed ones. */
  get depth(): number {
    return this.#ready.size;
  }

  add(key: string): void {
    if (this.#closed) return;
    if (this.#busy.has(key)) this.#dirty.add(key);
    else {
      this.#ready.add(this.#ownerOf(key), key);
      this.#serve();
    }
  }

  /** Of several delays for one key the shortest counts; a pass that begins meanwhile cancels it. */
  addAfter(key: string, delayMs: number): void {
    if (this.#closed) return;
    if (delayMs <= 0) {
      this.add(key);
      return;
    }
    this.#delayed.add(key, this.#clock.now() + delayMs);
    this.#arm();
  }

  /** Adds the key again after the delay that its failures in a row have earned; returns that delay. */
  addAfterFailure(key: string): number {
    const failures = (this.#failures.get(key) ?? 0) + 1;
    this.#failures.set(key, failures);
    const delayMs = backoffMs(failures, this.#backoff);
    this.addAfter(key, delayMs);
    return delayMs;
  }

  /** The key succeeded: its next failure starts from the smallest delay. */
  forgive(key: string): void {
    this.#failures.delete(key);
  }

  failures(key: string): number {
    return this.#failures.get(key) ?? 0;
  }

  /** Waits for a key; the taker must call `done`. Undefined: closed. */
  take(): Promise<string | undefined> {
    return new Promise((resolve) => {
      if (this.#closed) return resolve(undefined);
      this.#takers.push(resolve);
      this.#serve();
    });
  }

  done(key: string): void {
    this.#busy.delete(key);
    if (this.#dirty.delete(key)) this.add(key);
  }

  close(): void {
    this.#closed = true;
    this.#nap?.stop.abort();
    for (const taker of this.#takers.splice(0)) taker(undefined);
  }

  #serve(): void {
    while (this.#takers.length > 0) {
      const key = this.#ready.first();
      if (key === undefined) return;
      this.#ready.delete(key);
      this.#delayed.delete(key);
      this.#busy.add(key);
      this.#takers.shift()?.(key);
    }
  }

  /** One sleep, until the earliest delayed key. */
  #arm(): void {
    const at = this.#delayed.earliest();
    if (at === undefined || this.#closed || (this.#nap !== undefined && this.#nap.at <= at)) return;
    this.#nap?.stop.abort();
    const nap = { at, stop: new AbortController() };
    this.#nap = nap;
    this.#clock.sleep(Math.max(0, at - this.#clock.now()), nap.stop.signal).then(
      () => {
        if (this.#nap === nap) this.#nap = undefined;
        for (const key of this.#delayed.takeDue(this.#clock.now())) this.add(key);
        this.#arm();
      },
      // Replaced by a shorter one, or closed.
      () => undefined,
    );
  }
}
