/** Time as a dependency. Tests advance `ManualClock` by hand; nothing else reads the wall clock. */
export interface Clock {
  /** Milliseconds since the Unix epoch. */
  now(): number;
  /** Resolves after `ms`; rejects with the signal's reason when it aborts first. */
  sleep(ms: number, signal?: AbortSignal): Promise<void>;
  /** Calls back after `ms` unless the returned function was called before: a `sleep` for what is so frequent that its promise and signal count. */
  after?(ms: number, work: () => void): () => void;
}

/** `clock.after`, also of a clock that only sleeps. */
export function after(clock: Clock, ms: number, work: () => void): () => void {
  if (clock.after !== undefined) return clock.after(ms, work);
  const life = new AbortController();
  clock.sleep(ms, life.signal).then(work, () => undefined);
  return () => life.abort(ended);
}

/** Made once: an abort without a reason makes an exception with a stack. */
const ended = new Error('the wait was abandoned');

interface Sleeper {
  readonly at: number;
  readonly wake: () => void;
}

export class ManualClock implements Clock {
  #now: number;
  #sleepers: Sleeper[] = [];

  constructor(start = Date.UTC(2026, 0, 1)) {
    this.#now = start;
  }

  now(): number {
    return this.#now;
  }

  sleep(ms: number, signal?: AbortSignal): Promise<void> {
    return new Promise((resolve, reject) => {
      if (signal?.aborted) return reject(signal.reason);
      const sleeper: Sleeper = { at: this.#now + ms, wake: resolve };
      this.#sleepers.push(sleeper);
      signal?.addEventListener(
        'abort',
        () => {
          this.#sleepers = this.#sleepers.filter((s) => s !== sleeper);
          reject(signal.reason);
        },
        { once: true },
      );
    });
  }

  after(ms: number, work: () => void): () => void {
    const sleeper: Sleeper = { at: this.#now + ms, wake: work };
    this.#sleepers.push(sleeper);
    return () => {
      this.#sleepers = this.#sleepers.filter((s) => s !== sleeper);
    };
  }

  /** Moves time and wakes, in order of their deadline, everyone whose time has come. */
  advance(ms: number): void {
    this.#now += ms;
    const due = this.#sleepers.filter((s) => s.at <= this.#now).sort((a, b) => a.at - b.at);
    this.#sleepers = this.#sleepers.filter((s) => s.at > this.#now);
    for (const sleeper of due) sleeper.wake();
  }

  /** How many sleeps are pending: lets a test wait until the code under test has gone to sleep. */
  get sleeping(): number {
    return this.#sleepers.length;
  }
}
