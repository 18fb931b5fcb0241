/** One broker per data directory: two would each think the other's doorbells are their own. */
import { createHash } from 'node:crypto';
import { realpath } from 'node:fs/promises';
import { createServer } from 'node:net';
import { AppError } from '#shared/errors/app-error.ts';

/**
 * Held by an abstract socket, which the kernel releases when the process dies, however it dies. On other systems than Linux there is no such
 * thing, and no lock.
 */
export async function lockDirectory(dir: string): Promise<() => Promise<void>> {
  if (process.platform !== 'linux') return async () => undefined;
  const name = createHash('sha256')
    .update(await realpath(dir))
    .digest('hex');
  const server = createServer();
  await new Promise<void>((resolve, reject) => {
    server.once('error', (cause: NodeJS.ErrnoException) =>
      reject(
        cause.code === 'EADDRINUSE'
          ? new AppError(
              'in_use',
              `another broker is using the data directory ${dir}; stop it, or name another --data`,
              {
                detail: {
                  field: 'data',
                  value: dir,
                  remedy: 'stop the other broker, or name another --data directory',
                },
              },
            )
          : cause,
      ),
    );
    server.listen(`\0isthmus-broker-${name}`, resolve);
  });
  server.unref();
  return () => new Promise((resolve) => server.close(() => resolve()));
}
