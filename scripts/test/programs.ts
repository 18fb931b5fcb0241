/** Runs the programs of a step: in the foreground with visible output, or beside another step at low priority. */
import { type ChildProcess, spawn } from 'node:child_process';
import { closeSync, openSync, readFileSync } from 'node:fs';

/** How a program ended. */
interface Exit {
  /** 1 also when a signal ended it, or when it could not be started. */
  readonly code: number;
  /** `code 1`, `signal SIGKILL`. */
  readonly how: string;
  /** The last lines that it wrote to its standard error; of a program in the background, to its log. */
  readonly lastWords: string;
}

export type Execute = (argv: readonly [string, ...string[]]) => Promise<Exit>;

interface Where {
  readonly cwd: string;
}

/** Characters of the last words that are kept, and lines that are told. */
const kept = { characters: 16_384, lines: 30 };

const lastLines = (text: string): string => text.trimEnd().split('\n').slice(-kept.lines).join('\n');

export const foreground =
  ({ cwd }: Where): Execute =>
  async ([command, ...args]) => {
    const child = spawn(command, args, { cwd, stdio: ['ignore', 'inherit', 'pipe'], env: environment() });
    let said = '';
    child.stderr.on('data', (chunk: Buffer) => {
      process.stderr.write(chunk);
      said = `${said}${chunk}`.slice(-kept.characters);
    });
    return { ...(await ended(child, command)), lastWords: lastLines(said) };
  };

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
      const exit = await ended(child, command);
      return { ...exit, lastWords: lastLines(readFileSync(logFile, 'utf8').slice(-kept.characters)) };
    } finally {
      process.off('exit', end);
    }
  };

const environment = (): NodeJS.ProcessEnv => ({ ...process.env, FORCE_COLOR: '0' });

function ended(child: ChildProcess, command: string): Promise<Omit<Exit, 'lastWords'>> {
  return new Promise((resolve) => {
    child.on('error', (error) => {
      console.error(`cannot start ${command}: ${error.message}`);
      resolve({ code: 1, how: error.message });
    });
    child.on('close', (code, signal) =>
      resolve({ code: code ?? 1, how: code === null ? `signal ${signal}` : `code ${code}` }),
    );
  });
}
