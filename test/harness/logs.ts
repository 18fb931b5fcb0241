/** Logs of tests. */
import { type Log, silentLog } from '#shared/ports/log.ts';

const consoleLog: Log = {
  with: () => consoleLog,
  debug() {},
  info() {},
  warn: (message, fields) => console.warn(message, fields),
  error: (message, error, fields) => console.error(message, error, fields),
};

/** Silent; with `TEST_LOG=1` warnings and errors are printed. */
export const testLog: Log = process.env.TEST_LOG ? consoleLog : silentLog;

/** A log whose every line is kept as text with all that is in it, fields of `with` too: for tests of what no log may hold. */
export function recordingLog(): { readonly log: Log; readonly lines: readonly string[] } {
  const lines: string[] = [];
  const withFields = (bound: object): Log => {
    const keep = (...all: readonly unknown[]): void => void lines.push(JSON.stringify([bound, ...all]));
    return {
      with: (more) => withFields({ ...bound, ...more }),
      debug: keep,
      info: keep,
      warn: keep,
      error: (message, error, fields) => keep(message, String(error), fields),
    };
  };
  return { log: withFields({}), lines };
}
