/** Programs that talk while they run: `kubectl logs -f`, `attach`, `port-forward`. */
import { spawn } from 'node:child_process';
import { eventually } from '#test/harness/eventually.ts';
import { patience } from './stage.ts';

export interface Talk {
  say(text: string): void;
  /** Everything printed so far. */
  heard(): string;
  /** Waits for it on either output. */
  hear(pattern: RegExp): Promise<RegExpExecArray>;
  /** Ends its input and waits for its end; kills it if told or if it does not end. */
  end(options?: { readonly kill?: boolean }): Promise<number | null>;
}

export function talkTo([command, args]: readonly [string, readonly string[]]): Talk {
  const child = spawn(command, args, { stdio: ['pipe', 'pipe', 'pipe'] });
  let text = '';
  let ended = false;
  const end = new Promise<number | null>((resolve) => {
    child.on('close', (code) => {
      ended = true;
      resolve(code);
    });
    child.on('error', (error) => {
      text += error.message;
      ended = true;
      resolve(null);
    });
  });
  for (const stream of [child.stdout, child.stderr]) {
    stream.setEncoding('utf8');
    stream.on('data', (chunk: string) => {
      text += chunk;
    });
  }
  child.stdin.on('error', () => undefined); // it may end before it read everything
  return {
    say: (line) => void child.stdin.write(line),
    heard: () => text,
    hear: (pattern) =>
      eventually(
        `${args.slice(1).join(' ')} prints ${pattern}`,
        () => {
          const match = pattern.exec(text);
          if (match === null) throw new Error(`${ended ? 'it ended; ' : ''}printed: ${text}`);
          return match;
        },
        { ...patience, everyMs: 20 },
      ),
    async end({ kill = false } = {}) {
      child.stdin.end();
      if (kill) child.kill('SIGKILL');
      const hung = setTimeout(() => child.kill('SIGKILL'), 20_000);
      try {
        return await end;
      } finally {
        clearTimeout(hung);
      }
    },
  };
}
