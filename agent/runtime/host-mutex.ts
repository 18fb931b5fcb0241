/**
 * There may be one of a kind on a node at a time, across pods and versions: the kernel hands the name out once in each network namespace and
 * takes it back when its process ends, however it ends.
 */
import { createServer } from 'node:net';
import { AppError } from '#shared/errors/app-error.ts';
import type { Clock } from '#shared/ports/clock.ts';
import type { Log } from '#shared/ports/log.ts';

export interface HoldDeps {
  readonly clock: Clock;
  readonly log: Log;
}

export interface Held {
  release(): Promise<void>;
}

const lookAgainMs = 100;

/** Waits until nobody else on this node holds the name; rejects with the signal's reason, or with `host_unsupported` where there are no such names. */
export async function acquireHostMutex(name: string, { clock, log }: HoldDeps, signal: AbortSignal): Promise<Held> {
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

/** Undefined: somebody else has it. */
function take(name: string): Promise<Held | undefined> {
  // Nothing is said here: whoever connects is let go.
  const server = createServer((caller) => caller.destroy());
  return new Promise((resolve, reject) => {
    server.once('error', (cause: NodeJS.ErrnoException) => {
      if (cause.code === 'EADDRINUSE') return resolve(undefined);
      reject(new AppError('host_unsupported', `cannot hold ${name} on this node: ${cause.message}`, { cause }));
    });
    // A first NUL makes it a name in the kernel and no file.
    server.listen({ path: `\0${name}`, exclusive: true }, () =>
      resolve({ release: () => new Promise((done) => server.close(() => done())) }),
    );
    server.unref();
  });
}
