/** One at a time for each key, in the order of asking: of several virtual nodes of one provider, one reflects what they share. */
export class KeyedMutex {
  readonly #last = new Map<string, Promise<void>>();

  /** Waits for its turn and keeps it until `work` has ended. Returns at once when `signal` aborts first. */
  async run(key: string, signal: AbortSignal, work: (signal: AbortSignal) => Promise<void>): Promise<void> {
    const before = this.#last.get(key) ?? Promise.resolve();
    let release: () => void = () => undefined;
    const mine = new Promise<void>((resolve) => {
      release = resolve;
    });
    const last = before.then(() => mine);
    this.#last.set(key, last);
    void last.then(() => {
      if (this.#last.get(key) === last) this.#last.delete(key);
    });
    try {
      await Promise.race([before, aborted(signal)]);
      if (!signal.aborted) await work(signal);
    } finally {
      release();
    }
  }
}

const aborted = (signal: AbortSignal): Promise<void> =>
  new Promise((resolve) => {
    if (signal.aborted) resolve();
    else signal.addEventListener('abort', () => resolve(), { once: true });
  });
