/** What a command may touch of the outside world; built once in `main.ts`, by hand in tests. */
import type { Clock } from '#shared/ports/clock.ts';

/** The part of a stream that output needs. */
export interface Out {
  write(text: string): unknown;
  readonly isTTY?: boolean;
  readonly columns?: number;
}

export interface CliIo {
  readonly stdout: Out;
  readonly stderr: Out;
  /** All of standard input, for `--key -`. */
  readonly readStdin: () => Promise<string>;
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly home: string;
  readonly clock: Clock;
  /** Aborts on SIGINT and SIGTERM. */
  readonly signal: AbortSignal;
  /** Random bytes for idempotency keys. */
  readonly randomId: () => string;
}
