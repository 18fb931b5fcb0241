/** Structured log. The message is a constant; facts go into fields. Secrets never do. */
export interface Log {
  with(fields: Readonly<Record<string, unknown>>): Log;
  debug(message: string, fields?: Readonly<Record<string, unknown>>): void;
  info(message: string, fields?: Readonly<Record<string, unknown>>): void;
  warn(message: string, fields?: Readonly<Record<string, unknown>>): void;
  error(message: string, error: unknown, fields?: Readonly<Record<string, unknown>>): void;
}

export const silentLog: Log = {
  with: () => silentLog,
  debug() {},
  info() {},
  warn() {},
  error() {},
};
