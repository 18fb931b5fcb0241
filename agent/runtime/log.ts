/** `Log` on pino: one JSON line per record, errors with code, detail and cause, credentials masked wherever a field is named like one. */
import pino from 'pino';
import type { Log } from '#shared/ports/log.ts';

export interface LogOptions {
  readonly level?: 'debug' | 'info' | 'warn' | 'error' | 'silent';
  readonly fields?: Readonly<Record<string, unknown>>;
  /** Default: standard output. */
  readonly destination?: pino.DestinationStream;
}

const secretNames = ['token', 'password', 'privateKey', 'authorization', 'kubeconfig', 'secret', 'nonce'];

export function createLog({ level = 'info', fields = {}, destination }: LogOptions = {}): Log {
  const options: pino.LoggerOptions = {
    level,
    base: null,
    timestamp: pino.stdTimeFunctions.isoTime,
    formatters: { level: (label) => ({ level: label }) },
    serializers: { error: describeError },
    redact: { paths: secretNames.flatMap((name) => [name, `*.${name}`, `*.*.${name}`]), censor: '[redacted]' },
  };
  const root = destination === undefined ? pino(options) : pino(options, destination);
  return wrap(root.child(fields));
}

const wrap = (logger: pino.Logger): Log => ({
  with: (fields) => wrap(logger.child(fields)),
  debug: (message, fields = {}) => logger.debug(fields, message),
  info: (message, fields = {}) => logger.info(fields, message),
  warn: (message, fields = {}) => logger.warn(fields, message),
  error: (message, error, fields = {}) => logger.error({ ...fields, error }, message),
});

/** `code`, `detail` and the chain of causes, which a plain error serializer loses. */
function describeError(error: unknown): unknown {
  if (!(error instanceof Error)) return error;
  const { code, detail } = error as { code?: unknown; detail?: unknown };
  return {
    name: error.name,
    message: error.message,
    ...(code === undefined ? {} : { code }),
    ...(detail === undefined ? {} : { detail }),
    stack: error.stack,
    ...(error.cause === undefined ? {} : { cause: describeError(error.cause) }),
  };
}
