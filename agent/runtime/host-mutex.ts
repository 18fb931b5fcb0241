/**
 * A mutex between processes of one node, across pods and versions, on an abstract Unix socket: the kernel gives the name to one process of each
 * network namespace, and frees it when that process ends for any reason.
 */
import { createServer } from 'node:net';
import { AppError } from '#shared/errors/app-error.ts';
import type { Clock } from '#shared/ports/clock.ts';
import type { Log } from '#shared/ports/log.ts';

export interface HostMutexDeps {
  readonly clock: Clock;
  readonly log: Log;
}

export interface Held {
  release(): Promise<void>;
}

const lookAgainMs = 100;

/**
 * Waits until no other process on this node holds the name. Rejects with the signal's reason, or with `host_unsupported` where abstract sockets do
 * not exist.
 */
export async function acquireHostMutex(
  name: string,
  { clock, log }: HostMutexDeps,
  signal: AbortSignal,
): Promise<Held> {
  for (let waited = false; ; waited = true) {
    signal.throwIfAborted();
    const held = await take(name);
    if (held !== undefined) {
      if (waited) log.info('the other process of this node has ended', { name });
      return held;
    }
    if (!waited) log.info('waiting for another process of this node to end', { name });
    await clock.sleep(lookAgainMs, signal);
  }
}

/** Undefined: another process holds it. */
function take(name: string): Promise<Held | undefined> {
  // The socket carries no data: connections are closed at once.
  const server = createServer((caller) => caller.destroy());
  return new Promise((resolve, reject) => {
    server.once('error', (cause: NodeJS.ErrnoException) => {
      if (cause.code === 'EADDRINUSE') return resolve(undefined);
      reject(new AppError('host_unsupported', `cannot hold ${name} on this node: ${cause.message}`, { cause }));
    });
    // A leading NUL makes it an abstract name, not a file.
    server.listen({ path: `\0${name}`, exclusive: true }, () =>
      resolve({ release: () => new Promise((done) => server.close(() => done())) }),
    );
    server.unref();
  });
}
