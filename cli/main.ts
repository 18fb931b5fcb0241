/** Composition root of the command line. */
import { randomUUID } from 'node:crypto';
import { homedir } from 'node:os';
import { text } from 'node:stream/consumers';
import { systemClock } from '#shared/ports/system-clock.ts';
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
  clock: systemClock,
  signal: stop.signal,
  randomId: () => randomUUID(),
});
