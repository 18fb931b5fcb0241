/** `Log` on pino: one JSON line per record. What a line may say, `shared/ports/log-record.ts` decides. */
import pino from 'pino';
import type { Log } from '#shared/ports/log.ts';
import { loggable } from '#shared/ports/log-record.ts';

export interface LogOptions {
  readonly level?: 'debug' | 'info' | 'warn' | 'error' | 'silent';
  readonly fields?: Readonly<Record<string, unknown>>;
  /** Default: standard output. */
  readonly destination?: pino.DestinationStream;
}

export function createLog({ level = 'info', fields = {}, destination }: LogOptions = {}): Log {
  const options: pino.LoggerOptions = {
    level,
    base: null,
    timestamp: pino.stdTimeFunctions.isoTime,
    formatters: { level: (label) => ({ level: label }), log: loggable },
  };
  const root = destination === undefined ? pino(options) : pino(options, destination);
  return wrap(root.child(loggable(fields)));
}

const wrap = (logger: pino.Logger): Log => ({
  with: (fields) => wrap(logger.child(loggable(fields))),
  debug: (message, fields = {}) => logger.debug(fields, message),
  info: (message, fields = {}) => logger.info(fields, message),
  warn: (message, fields = {}) => logger.warn(fields, message),
  error: (message, error, fields = {}) => logger.error({ ...fields, error }, message),
});
