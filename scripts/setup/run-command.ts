/** Runs a program to its end and gives back what it printed; a failure becomes `command_failed` with the end of its output. */
import { execFile } from 'node:child_process';
import { AppError } from '#shared/errors/app-error.ts';

export interface RunOptions {
  readonly cwd?: string;
  /** Added to the environment of this process. */
  readonly env?: Readonly<Record<string, string>>;
  readonly timeoutMs?: number;
  /** Written to the program's standard input, which is then closed. */
  readonly input?: string;
}

const tail = (text: string): string => text.trim().split('\n').slice(-15).join('\n');

export function runCommand(command: string, args: readonly string[], options: RunOptions = {}): Promise<string> {
  return new Promise((resolve, reject) => {
    const child = execFile(
      command,
      [...args],
      {
        ...(options.cwd === undefined ? {} : { cwd: options.cwd }),
        ...(options.timeoutMs === undefined ? {} : { timeout: options.timeoutMs, killSignal: 'SIGKILL' }),
        env: { ...process.env, ...options.env },
        maxBuffer: 64 * 1024 * 1024,
      },
      (error, stdout, stderr) => {
        if (!error) return resolve(stdout);
        const said = tail(stderr) || tail(stdout) || error.message;
        const line = [command, ...args.slice(0, 6)].join(' ');
        reject(
          new AppError('command_failed', `\`${line}\` failed: ${said}`, { detail: { exit: error.code }, cause: error }),
        );
      },
    );
    child.stdin?.on('error', () => undefined); // a program that ends without reading its input
    child.stdin?.end(options.input ?? '');
  });
}
