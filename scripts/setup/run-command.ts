/** Runs a program to its end and gives back what it printed; a failure becomes `command_failed` with the end of its output. */
import { spawn } from 'node:child_process';
import { AppError } from '#shared/errors/app-error.ts';

export interface RunOptions {
  readonly cwd?: string;
  /** Added to the environment of this process. */
  readonly env?: Readonly<Record<string, string>>;
  readonly timeoutMs?: number;
  /** Written to the program's standard input, which is then closed. */
  readonly input?: string;
  /** An open file that becomes the program's standard input, instead of `input`. */
  readonly stdin?: number;
  /** Called with what the program prints on its standard error, as it comes. */
  readonly onStderr?: (text: string) => void;
}

const tail = (text: string): string => text.trim().split('\n').slice(-15).join('\n');

export function runCommand(command: string, args: readonly string[], options: RunOptions = {}): Promise<string> {
  const line = [command, ...args.slice(0, 12)].join(' ');
  return new Promise((resolve, reject) => {
    const child = spawn(command, [...args], {
      stdio: [options.stdin ?? 'pipe', 'pipe', 'pipe'],
      env: { ...process.env, ...options.env },
      ...(options.cwd === undefined ? {} : { cwd: options.cwd }),
      ...(options.timeoutMs === undefined ? {} : { timeout: options.timeoutMs, killSignal: 'SIGKILL' as const }),
    });
    const [stdout, stderr]: [Buffer[], Buffer[]] = [[], []];
    child.stdout?.on('data', (chunk: Buffer) => stdout.push(chunk));
    child.stderr?.on('data', (chunk: Buffer) => {
      stderr.push(chunk);
      options.onStderr?.(chunk.toString());
    });
    child.stdin?.on('error', () => undefined); // a program that ends without reading its input
    child.stdin?.end(options.input ?? '');
    child.once('error', (cause) =>
      reject(new AppError('command_failed', `cannot start \`${command}\`: ${cause.message}`, { cause })),
    );
    child.once('close', (exit, signal) => {
      const printed = Buffer.concat(stdout).toString();
      if (exit === 0) return resolve(printed);
      const output =
        tail(Buffer.concat(stderr).toString()) ||
        tail(printed) ||
        (signal ? `ended by ${signal}` : `exit code ${exit}`);
      reject(new AppError('command_failed', `\`${line}\` failed: ${output}`, { detail: { exit, signal } }));
    });
  });
}
