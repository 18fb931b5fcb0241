/** The agent under test: a command of its author's, started with the documented environment. */
import { type ChildProcess, spawn } from 'node:child_process';

export interface AgentProcess {
  /** Its exit code once it has ended; undefined while it runs. */
  readonly code: () => number | undefined;
  /** The last of what it printed. */
  readonly output: () => string;
  /** SIGTERM, then SIGKILL after ten seconds. */
  stop(): Promise<void>;
}

const stopMs = 10_000;
const keptOutput = 4_000;

export function startAgent(command: string, environment: Readonly<Record<string, string>>): AgentProcess {
  let output = '';
  let code: number | undefined;
  const child: ChildProcess = spawn('/bin/sh', ['-c', `exec ${command}`], {
    env: { ...process.env, ...environment },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  const keep = (data: Buffer): void => {
    output = `${output}${data}`.slice(-keptOutput);
  };
  child.stdout?.on('data', keep);
  child.stderr?.on('data', keep);
  const ended = new Promise<void>((resolve) => {
    child.once('exit', (exit) => {
      code = exit ?? -1;
      resolve();
    });
    child.once('error', (error) => {
      output = error.message;
      code = -1;
      resolve();
    });
  });
  return {
    code: () => code,
    output: () => output,
    async stop() {
      if (code !== undefined) return;
      child.kill('SIGTERM');
      const impatience = setTimeout(() => child.kill('SIGKILL'), stopMs);
      await ended;
      clearTimeout(impatience);
    },
  };
}
