/** A server process for the length of a test file: started, awaited, stopped by its own pid. */
import { spawn } from 'node:child_process';
import { eventually } from '#test/harness/eventually.ts';

export interface Daemon {
  stop(): Promise<void>;
}

export interface DaemonOptions {
  readonly command: string;
  readonly args: readonly string[];
  readonly env?: Readonly<Record<string, string>>;
  /** Rejects as long as the server is not ready. */
  readonly ready: () => Promise<unknown>;
}

export async function startDaemon({ command, args, env, ready }: DaemonOptions): Promise<Daemon> {
  const child = spawn(command, [...args], { stdio: ['ignore', 'pipe', 'pipe'], env: { ...process.env, ...env } });
  const output: string[] = [];
  const keep = (chunk: Buffer): void => {
    output.push(chunk.toString());
    if (output.length > 50) output.shift();
  };
  child.stdout.on('data', keep);
  child.stderr.on('data', keep);
  let ended: string | undefined;
  const exit = new Promise<void>((resolve) => {
    child.once('error', (error) => {
      ended = error.message;
      resolve();
    });
    child.once('exit', (code, signal) => {
      ended ??= `ended with ${code ?? signal}`;
      resolve();
    });
  });
  const stop = async (): Promise<void> => {
    child.kill('SIGKILL');
    await exit;
  };
  try {
    await eventually(
      `${command} answers`,
      async () => {
        if (ended !== undefined) return true;
        await ready();
        return true;
      },
      { withinMs: 60_000, everyMs: 50 },
    );
    if (ended !== undefined) throw new Error(`${command} ${ended}\n${output.join('')}`);
  } catch (error) {
    await stop();
    throw error;
  }
  return { stop };
}
