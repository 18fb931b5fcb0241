/** Runs a program to its end, or in the background, with what it printed. */
import { type ChildProcess, spawn } from 'node:child_process';
import { closeSync, openSync } from 'node:fs';
import path from 'node:path';

export interface Ended {
  readonly code: number;
  readonly stdout: string;
  readonly stderr: string;
  readonly seconds: number;
}

export interface ProgramOptions {
  readonly env?: Readonly<Record<string, string | undefined>>;
  readonly input?: string;
  readonly timeoutMs?: number;
  readonly cwd?: string;
}

/** Never rejects for an exit code; rejects when the program cannot be started. */
export function run(command: string, args: readonly string[], options: ProgramOptions = {}): Promise<Ended> {
  const started = performance.now();
  return new Promise((resolve, reject) => {
    const child = spawn(command, args, {
      stdio: ['pipe', 'pipe', 'pipe'],
      env: { ...process.env, ...options.env },
      ...(options.cwd === undefined ? {} : { cwd: options.cwd }),
      timeout: options.timeoutMs ?? 120_000,
    });
    const out: Buffer[] = [];
    const err: Buffer[] = [];
    child.stdout.on('data', (chunk: Buffer) => out.push(chunk));
    child.stderr.on('data', (chunk: Buffer) => err.push(chunk));
    child.stdin.on('error', () => undefined); // it may end before it read everything
    child.stdin.end(options.input ?? '');
    child.on('error', reject);
    child.on('close', (code, signal) =>
      resolve({
        code: code ?? (signal === null ? 1 : 128),
        stdout: Buffer.concat(out).toString('utf8'),
        stderr: Buffer.concat(err).toString('utf8'),
        seconds: (performance.now() - started) / 1000,
      }),
    );
  });
}

/** Like `run`, and rejects with everything printed unless the program succeeds. */
export async function must(command: string, args: readonly string[], options: ProgramOptions = {}): Promise<Ended> {
  const ended = await run(command, args, options);
  if (ended.code !== 0) {
    throw new Error(
      `${path.basename(command)} ${args.join(' ')} ended with ${ended.code} after ${ended.seconds.toFixed(1)} s\n${ended.stdout}${ended.stderr}`,
    );
  }
  return ended;
}

/** Starts a program that outlives its parent, both outputs in `log`. */
export function background(
  command: string,
  args: readonly string[],
  log: string,
  env: Readonly<Record<string, string | undefined>> = {},
): ChildProcess {
  const file = openSync(log, 'a');
  const child = spawn(command, args, {
    stdio: ['ignore', file, file],
    detached: true,
    env: { ...process.env, ...env },
  });
  child.unref();
  return child;
}

export interface TiedProgram {
  /** SIGTERM; resolves once it has ended, by that or before. */
  stop(): Promise<void>;
}

/** Starts a program that ends with this process, also where this is killed; both outputs are appended to `log`. */
export function startTied(
  program: string,
  args: readonly string[],
  log: string,
  env: Readonly<Record<string, string>> = {},
): TiedProgram {
  const file = openSync(log, 'a');
  const child = spawn('setpriv', ['--pdeathsig', 'KILL', program, ...args], {
    stdio: ['ignore', file, file],
    env: { ...process.env, ...env },
  });
  closeSync(file);
  const ended = new Promise<void>((resolve) => child.once('exit', () => resolve()));
  return {
    async stop() {
      child.kill('SIGTERM');
      await ended;
    },
  };
}
