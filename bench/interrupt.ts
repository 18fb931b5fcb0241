/** Ends what a bench has started when the bench is interrupted: whole clusters do not end with the process that asked for them. */
import os from 'node:os';

const signals = ['SIGINT', 'SIGTERM'] as const;

export interface Interruptible {
  /** Something started later, which ends earlier. */
  alsoEnd(end: () => Promise<void>): void;
  /** Runs `end`, once, whether called or by a signal; after a signal the process exits as shells report it. */
  close(): Promise<void>;
}

/**
 * From now on SIGINT and SIGTERM run `end` before the process exits with 128 and the signal's number. A second signal while `end` runs changes
 * nothing. Errors of `end` after a signal go to `log`.
 */
export function endOnInterrupt(end: () => Promise<void>, log: (line: string) => void): Interruptible {
  const all = [end];
  let ending: Promise<void> | undefined;
  const endAll = async (): Promise<void> => {
    for (const one of all.splice(0).reverse()) await one();
  };
  const once = (): Promise<void> => {
    ending ??= endAll();
    return ending;
  };
  const interrupted = (signal: NodeJS.Signals): void => {
    if (ending !== undefined) return;
    log(`${signal}: removing what this bench has started`);
    once()
      .catch((error: unknown) => log(`not all of it could be removed: ${String(error)}`))
      .finally(() => process.exit(128 + os.constants.signals[signal]));
  };
  for (const signal of signals) process.on(signal, interrupted);
  return {
    alsoEnd: (later) => void all.push(later),
    async close() {
      await once();
      for (const signal of signals) process.off(signal, interrupted);
    },
  };
}
