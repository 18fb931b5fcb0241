/** Composition root of the command line. */
import { randomUUID } from 'node:crypto';
import { homedir } from 'node:os';
import { text } from 'node:stream/consumers';
import { setTimeout as timer } from 'node:timers/promises';
import { runCli } from './program.ts';

const stop = new AbortController();
for (const name of ['SIGINT', 'SIGTERM'] as const) process.once(name, () => stop.abort(new Error(`received ${name}`)));
// A reader like `head` may go first; that is no failure of ours.
process.stdout.on('error', (error: NodeJS.ErrnoException) => process.exit(error.code === 'EPIPE' ? 0 : 1));

process.exitCode = await runCli(process.argv.slice(2), {
  stdout: process.stdout,
  stderr: process.stderr,
  readStdin: () => text(process.stdin),
  env: process.env,
  home: homedir(),
  clock: {
    now: () => Date.now(),
    sleep: (ms, signal) => timer(ms, undefined, signal === undefined ? {} : { signal }),
  },
  signal: stop.signal,
  randomId: () => randomUUID(),
});
