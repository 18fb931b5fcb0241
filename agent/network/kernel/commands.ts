/** Runs the network tools in one network namespace: our own, or that of another process. */
import { type ChildProcess, spawn } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { Socket } from 'node:net';
import os from 'node:os';
import path from 'node:path';
import { AppError } from '#shared/errors/app-error.ts';

interface Ended {
  readonly code: number;
  readonly stdout: string;
  readonly stderr: string;
}

export interface FollowHandlers {
  line(text: string): void;
  /** It printed an error. */
  complaint(): void;
  /** The last call; not after `stop`. */
  ended(): void;
}

export interface Conversation {
  /** Adds the end of the line. */
  write(line: string): void;
  /** At once. */
  stop(): void;
}

export interface Commands {
  /** Resolves with any exit code. Rejects with `host_unsupported` when the program does not exist. */
  run(program: string, args: readonly string[]): Promise<Ended>;
  /** Rejects with `command_failed` unless the program succeeds. */
  must(program: string, args: readonly string[]): Promise<string>;
  /** Runs until it is stopped, or ends by itself. The child does not keep this process from exiting. */
  follow(program: string, args: readonly string[], handlers: FollowHandlers): { stop(): void };
  /** As `follow`, with an open stdin: for a program that reads lines and answers them. */
  converse(program: string, args: readonly string[], handlers: FollowHandlers): Conversation;
  /** A file that only we can read; the same name is written over. Neither nft nor wg reads Node's pipes (they are sockets). */
  file(name: string, content: string): Promise<string>;
  close(): void;
}

const longestMs = 60_000;
/** Environment for interactive programs: HOME is /dev/null, so that they write no history file. */
const interactiveEnvironment = {
  PATH: '/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin',
  HOME: '/dev/null',
};

/** `netns`: a path such as /proc/PID/ns/net. */
export function commandsIn(netns: string | undefined): Commands {
  const folder = mkdtempSync(path.join(os.tmpdir(), 'isthmus-host-'));
  const inside = (program: string, args: readonly string[]): [string, readonly string[]] =>
    netns === undefined ? [program, args] : ['nsenter', [`--net=${netns}`, program, ...args]];
  const run = (program: string, args: readonly string[]): Promise<Ended> => execute(...inside(program, args));
  // The kernel kills the child when this process dies without cleaning up.
  const mortal = (program: string, args: readonly string[]) =>
    inside('setpriv', ['--pdeathsig', 'KILL', program, ...args]);
  return {
    run,
    async must(program, args) {
      const { code, stdout, stderr } = await run(program, args);
      if (code === 0) return stdout;
      throw new AppError('command_failed', `${program} ${args.join(' ')} ended with ${code}: ${stderr.trim()}`);
    },
    follow: (program, args, handlers) =>
      attend(spawn(...mortal(program, args), { stdio: ['ignore', 'pipe', 'pipe'] }), handlers),
    converse: (program, args, handlers) =>
      attend(spawn(...mortal(program, args), { stdio: 'pipe', env: interactiveEnvironment }), handlers),
    async file(name, content) {
      const file = path.join(folder, name);
      // A synchronous write: the file is small and in memory, and four trips through the thread pool would cost more than the write.
      writeFileSync(file, content, { mode: 0o600 });
      return file;
    },
    close: () => rmSync(folder, { recursive: true, force: true }),
  };
}

function execute(program: string, args: readonly string[]): Promise<Ended> {
  return new Promise((resolve, reject) => {
    const child = spawn(program, args, { stdio: ['ignore', 'pipe', 'pipe'], timeout: longestMs });
    const out: Buffer[] = [];
    const err: Buffer[] = [];
    child.stdout.on('data', (chunk: Buffer) => out.push(chunk));
    child.stderr.on('data', (chunk: Buffer) => err.push(chunk));
    child.on('error', (cause) =>
      reject(new AppError('host_unsupported', `${program} cannot be started: ${cause.message}`, { cause })),
    );
    child.on('close', (code) =>
      resolve({
        code: code ?? 128,
        stdout: Buffer.concat(out).toString('utf8'),
        stderr: Buffer.concat(err).toString('utf8'),
      }),
    );
  });
}

function attend(child: ChildProcess, handlers: FollowHandlers): Conversation {
  const { stdin, stdout, stderr } = child;
  let rest = '';
  let isOver = false;
  const over = (): void => {
    if (isOver) return;
    isOver = true;
    handlers.ended();
  };
  stdout?.setEncoding('utf8').on('data', (text: string) => {
    const lines = (rest + text).split('\n');
    rest = lines.pop() ?? '';
    for (const line of lines) if (!isOver) handlers.line(line);
  });
  stderr?.on('data', () => {
    if (!isOver) handlers.complaint();
  });
  // A write error means that the program has ended, which its exit reports anyway.
  stdin?.on('error', () => undefined);
  child.on('error', over).on('close', over);
  child.unref();
  for (const stream of [stdin, stdout, stderr]) if (stream instanceof Socket) stream.unref();
  return {
    write: (line) => void stdin?.write(`${line}\n`),
    stop() {
      isOver = true;
      child.kill('SIGKILL');
    },
  };
}
