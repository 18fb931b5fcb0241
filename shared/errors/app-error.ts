/** The one error class. Recognise errors by `code`, never by message or class identity: bundles may hold two copies. */
import { type CodeFacts, codes, type ErrorCode } from './codes.ts';

export interface ErrorOptions {
  /** JSON-safe facts for machines: field, value, accepted, limit, …. Never a secret. */
  readonly detail?: Readonly<Record<string, unknown>>;
  readonly cause?: unknown;
}

export class AppError extends Error {
  override readonly name = 'AppError';
  readonly code: ErrorCode;
  readonly detail: Readonly<Record<string, unknown>>;

  /** `message`: lower case, in the caller's words, with the value received and what would be accepted. */
  constructor(code: ErrorCode, message: string, options: ErrorOptions = {}) {
    super(message, options.cause === undefined ? undefined : { cause: options.cause });
    this.code = code;
    this.detail = options.detail ?? {};
  }

  get facts(): CodeFacts {
    return codes[this.code];
  }
}

/** Undefined when `error` is none of ours. */
export function codeOf(error: unknown): ErrorCode | undefined {
  if (typeof error !== 'object' || error === null || !('code' in error)) return undefined;
  const { code } = error;
  return typeof code === 'string' && Object.hasOwn(codes, code) ? (code as ErrorCode) : undefined;
}

export const isRetryable = (error: unknown): boolean => {
  const code = codeOf(error);
  return code === undefined ? false : codes[code].retry;
};
