/** `Log` as one JSON line per record on standard output, without a library: the node process is small. Same shape as `agent/runtime/log.ts`. */
import type { Log } from '#shared/ports/log.ts';
import { loggable } from '#shared/ports/log-record.ts';

const levels = ['debug', 'info', 'warn', 'error'] as const;
type Level = (typeof levels)[number];
type Fields = Readonly<Record<string, unknown>>;

export function createPlainLog(
  least: Level,
  fields: Fields = {},
  write: (line: string) => void = (line) => void process.stdout.write(line),
): Log {
  const say = (level: Level, msg: string, more: Fields): void => {
    if (levels.indexOf(level) < levels.indexOf(least)) return;
    write(`${JSON.stringify({ level, time: new Date().toISOString(), ...loggable({ ...fields, ...more }), msg })}\n`);
  };
  return {
    with: (more) => createPlainLog(least, { ...fields, ...more }, write),
    debug: (message, more = {}) => say('debug', message, more),
    info: (message, more = {}) => say('info', message, more),
    warn: (message, more = {}) => say('warn', message, more),
    error: (message, error, more = {}) => say('error', message, { ...more, error }),
  };
}
