/** How a test file gets a server of the pool: one connection to a Unix socket is one lease, which ends with `release` or with the process that made it. */
import net from 'node:net';
import type { ApiServer } from '#test/harness/kube-apiserver.ts';
import type { Pool } from './pool.ts';

/** What crosses the socket. */
export type Described = Omit<ApiServer, 'stop'>;
type Message = { readonly server: Described } | { readonly error: string };

/** Answers each connection with one line of JSON. `describe` gives what a test file may know of a server. */
export async function servePool<S>(
  file: string,
  pool: Pool<S>,
  describe: (server: S) => Described,
): Promise<net.Server> {
  const listener = net.createServer((socket) => {
    socket.on('error', () => socket.destroy());
    const answer = async (): Promise<void> => {
      const { server, release } = await pool.lease();
      if (socket.destroyed) return release();
      socket.once('close', () => void release());
      socket.write(`${JSON.stringify({ server: describe(server) } satisfies Message)}\n`);
    };
    answer().catch((error: Error) => socket.end(`${JSON.stringify({ error: error.message } satisfies Message)}\n`));
  });
  await new Promise<void>((resolve, reject) => listener.once('error', reject).listen(file, resolve));
  return listener;
}

export interface Leased {
  readonly server: Described;
  release(): void;
}

/** Rejects when the pool cannot start a server. The lease lasts until `release` or the end of this process. */
export function leaseFrom(file: string): Promise<Leased> {
  return new Promise((resolve, reject) => {
    const socket = net.connect(file);
    let text = '';
    socket.setEncoding('utf8');
    socket.once('error', reject);
    socket.once('close', () => reject(new Error('the pool of API servers closed the connection')));
    socket.on('data', (chunk: string) => {
      text += chunk;
      if (!text.endsWith('\n')) return;
      const message = JSON.parse(text) as Message;
      if ('error' in message) return reject(new Error(`the pool of API servers: ${message.error}`));
      // A lease keeps no process alive.
      socket.unref();
      resolve({ server: message.server, release: () => socket.destroy() });
    });
  });
}
