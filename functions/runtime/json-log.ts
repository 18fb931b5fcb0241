/** The broker's log: one JSON line per record. What a line may say, `shared/ports/log-record.ts` decides. */
import pino from 'pino';
import type { Log } from '#shared/ports/log.ts';
import { loggable } from '#shared/ports/log-record.ts';

export type LogLevel = 'debug' | 'info' | 'warn' | 'error';

export function createJsonLog(level: LogLevel, destination?: pino.DestinationStream): Log {
  const options: pino.LoggerOptions = {
    level,
    base: null,
    timestamp: pino.stdTimeFunctions.isoTime,
    formatters: { level: (name) => ({ level: name }), log: loggable },
  };
  // Standard error, synchronously: what was logged before a crash is there after it.
  return wrap(pino(options, destination ?? pino.destination({ dest: 2, sync: true })));
}

const wrap = (logger: pino.Logger): Log => ({
  with: (fields) => wrap(logger.child(loggable(fields))),
  debug: (message, fields = {}) => logger.debug(fields, message),
  info: (message, fields = {}) => logger.info(fields, message),
  warn: (message, fields = {}) => logger.warn(fields, message),
  error: (message, error, fields = {}) => logger.error({ ...fields, error }, message),
});
