/** Prints what happens when: one line a step, with seconds since the start and the step's own. */

export interface Timeline {
  /** Runs one step; on failure says which step it was and lets the error through. */
  step<T>(what: string, work: () => Promise<T>): Promise<T>;
  note(text: string): void;
  /** All steps, for the end. */
  table(): string;
}

export function createTimeline(write: (line: string) => void, now: () => number): Timeline {
  const started = now();
  const done: { readonly what: string; readonly at: number; readonly seconds: number }[] = [];
  const since = (from: number) => (now() - from) / 1000;
  return {
    async step(what, work) {
      const at = now();
      write(`[${since(started).toFixed(1).padStart(6)} s] ${what} …`);
      try {
        const result = await work();
        done.push({ what, at: (at - started) / 1000, seconds: since(at) });
        return result;
      } catch (error) {
        write(`[${since(started).toFixed(1).padStart(6)} s] ${what}: failed`);
        throw error;
      }
    },
    note: (text) => write(`           ${text}`),
    table: () =>
      done
        .map((s) => `  ${s.at.toFixed(1).padStart(6)} s  +${s.seconds.toFixed(1).padStart(5)} s  ${s.what}`)
        .join('\n'),
  };
}
