/** For tests: runs commands in this process and keeps what they print. */
import { randomUUID } from 'node:crypto';
import { systemClock } from '#shared/ports/system-clock.ts';
import type { CliIo } from './output/io.ts';
import { runCli } from './program.ts';

export interface Ran {
  readonly code: number;
  readonly out: string;
  readonly err: string;
}

export interface Options {
  readonly env?: Readonly<Record<string, string>>;
  readonly stdin?: string;
  readonly home?: string;
  readonly signal?: AbortSignal;
  readonly tty?: boolean;
  /** Sees what goes to stdout as it comes. */
  readonly onOut?: (text: string) => void;
  readonly onErr?: (text: string) => void;
  readonly clock?: CliIo['clock'];
}

export function capturedIo({
  env = {},
  stdin = '',
  home = '/nonexistent',
  signal,
  tty = false,
  onOut,
  onErr,
  clock,
}: Options): CliIo & Omit<Ran, 'code'> {
  const printed = { out: '', err: '' };
  return {
    stdout: {
      isTTY: tty,
      write: (text) => {
        printed.out += text;
        onOut?.(text);
      },
    },
    stderr: {
      isTTY: tty,
      write: (text) => {
        printed.err += text;
        onErr?.(text);
      },
    },
    readStdin: async () => stdin,
    env,
    home,
    clock: clock ?? systemClock,
    signal: signal ?? new AbortController().signal,
    randomId: () => randomUUID(),
    get out() {
      return printed.out;
    },
    get err() {
      return printed.err;
    },
  };
}

export async function isthmus(args: readonly string[], options: Options = {}): Promise<Ran> {
  const io = capturedIo(options);
  const code = await runCli(args, io);
  return { code, out: io.out, err: io.err };
}
