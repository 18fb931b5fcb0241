/** The broker's log: one JSON line per record. Fields named like credentials are masked, for every caller. */
import pino from 'pino';
import type { Log } from '#shared/ports/log.ts';

const masked = ['token', 'secret', 'authorization', 'password', 'privateKey', 'nonce'];

export type LogLevel = 'debug' | 'info' | 'warn' | 'error';

export function createJsonLog(level: LogLevel, destination?: pino.DestinationStream): Log {
  const options: pino.LoggerOptions = {
    level,
    base: null,
    timestamp: pino.stdTimeFunctions.isoTime,
    formatters: { level: (name) => ({ level: name }) },
    redact: { paths: masked.flatMap((name) => [name, `*.${name}`]), censor: '[masked]' },
  };
  // Standard error, synchronously: what was logged before a crash is there after it.
  return wrap(pino(options, destination ?? pino.destination({ dest: 2, sync: true })));
}

const wrap = (logger: pino.Logger): Log => ({
  with: (fields) => wrap(logger.child(fields)),
  debug: (message, fields = {}) => logger.debug(fields, message),
  info: (message, fields = {}) => logger.info(fields, message),
  warn: (message, fields = {}) => logger.warn(fields, message),
  error: (message, error, fields = {}) => logger.error({ ...fields, error: factsOf(error) }, message),
});

/** Code, detail and the chain of causes, which a plain serializer loses. */
function factsOf(error: unknown): unknown {
  if (!(error instanceof Error)) return error;
  const { code, detail } = error as { code?: unknown; detail?: unknown };
  return {
    message: error.message,
    ...(code !== undefined && { code }),
    ...(detail !== undefined && { detail }),
    stack: error.stack,
    ...(error.cause !== undefined && { cause: factsOf(error.cause) }),
  };
}
