/** A mutex for each key, granted in the order of asking. */
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
      await settledOrAborted(before, signal);
      if (!signal.aborted) await work(signal);
    } finally {
      release();
    }
  }
}

/** Leaves no listener on the signal, which may live as long as the process. */
function settledOrAborted(before: Promise<void>, signal: AbortSignal): Promise<void> {
  if (signal.aborted) return Promise.resolve();
  return new Promise((resolve) => {
    const done = (): void => {
      signal.removeEventListener('abort', done);
      resolve();
    };
    signal.addEventListener('abort', done, { once: true });
    void before.then(done);
  });
}
