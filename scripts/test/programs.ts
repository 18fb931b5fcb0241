/** Runs the programs of a step: in the foreground with visible output, or beside another step at low priority. */
import { spawn } from 'node:child_process';
import { closeSync, openSync } from 'node:fs';

/** Resolves with the exit code; 1 when it cannot be started. */
export type Execute = (argv: readonly [string, ...string[]]) => Promise<number>;

interface Where {
  readonly cwd: string;
}

export const foreground =
  ({ cwd }: Where): Execute =>
  ([command, ...args]) =>
    ended(spawn(command, args, { cwd, stdio: ['ignore', 'inherit', 'inherit'], env: environment() }), command);

/**
 * Appends what the programs say to `logFile`. `niceness` counts against everything else on the machine: where Linux shares processor time by
 * session first, the session is as nice.
 */
export const background =
  ({ cwd, logFile, niceness }: Where & { readonly logFile: string; readonly niceness: number }): Execute =>
  async ([command, ...args]) => {
    const log = openSync(logFile, 'a');
    const script = `echo ${niceness} 2>/dev/null >/proc/self/autogroup; exec nice -n ${niceness} "$@"`;
    const argv = ['-c', script, 'sh', command, ...args];
    const child = spawn('sh', argv, { cwd, stdio: ['ignore', log, log], env: environment(), detached: true });
    closeSync(log);
    // A session of its own does not hear of ctrl-c.
    const end = (): void => {
      if (child.pid !== undefined) process.kill(-child.pid, 'SIGTERM');
    };
    process.once('exit', end);
    try {
      return await ended(child, command);
    } finally {
      process.off('exit', end);
    }
  };

const environment = (): NodeJS.ProcessEnv => ({ ...process.env, FORCE_COLOR: '0' });

function ended(child: ReturnType<typeof spawn>, command: string): Promise<number> {
  return new Promise((resolve) => {
    child.on('error', (error) => {
      console.error(`cannot start ${command}: ${error.message}`);
      resolve(1);
    });
    child.on('close', (code) => resolve(code ?? 1));
  });
}
