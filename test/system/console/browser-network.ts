/**
 * A network namespace for a browser, with nothing but loopback, and a proxy to the loopback addresses of the test. In the namespace of the test,
 * interfaces come and go with other tests, and Chromium ends every request with ERR_NETWORK_CHANGED when one does.
 */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { createServer, request } from 'node:http';
import { connect, type Server } from 'node:net';

const port = 3128;
/** The socket listens inside the namespace. This process accepts its connections: a socket stays in the namespace that made it. */
const listen = `
  const server = require('node:net').createServer();
  server.listen(${port}, '127.0.0.1', () => process.send('listening', server, () => server.close()));
  process.on('disconnect', () => process.exit());`;

export interface BrowserNetwork {
  /** For a program that is to run in the namespace: put it before the program's own arguments. */
  readonly command: readonly string[];
  readonly proxy: string;
  close(): void;
}

function createProxy() {
  const proxy = createServer((incoming, answer) => {
    const { url = '', method, headers } = incoming;
    const outgoing = request(url, { method, headers }, (reply) => {
      answer.writeHead(reply.statusCode ?? 502, reply.headers);
      reply.pipe(answer);
    });
    outgoing.on('error', () => answer.destroy());
    answer.on('close', () => outgoing.destroy());
    incoming.pipe(outgoing);
  });
  return proxy.on('connect', ({ url }, socket) => {
    const { hostname, port: to } = new URL(`http://${url}`);
    const outgoing = connect(Number(to), hostname, () => socket.write('HTTP/1.1 200 Connected\r\n\r\n'));
    for (const [end, other] of [
      [socket, outgoing],
      [outgoing, socket],
    ] as const) {
      end.on('error', () => other.destroy());
      end.on('close', () => other.destroy());
      end.pipe(other);
    }
  });
}

/** Needs root. The namespace ends with `close`, or with this process. Rejects when it cannot be made. */
export async function openBrowserNetwork(): Promise<BrowserNetwork> {
  const script = ['ip link set lo up && exec "$@"', 'sh', process.execPath, '-e', listen];
  const keeper = spawn('unshare', ['--net', 'sh', '-c', ...script], { stdio: ['ignore', 'inherit', 'inherit', 'ipc'] });
  const ended = once(keeper, 'exit').then(([code]) => {
    throw new Error(`no network namespace for the browser: unshare ended with ${code}`);
  });
  const [, server] = (await Promise.race([once(keeper, 'message'), ended])) as [string, Server];
  ended.catch(() => undefined);
  const proxy = createProxy();
  server.on('connection', (socket) => proxy.emit('connection', socket));
  return {
    command: ['nsenter', `--net=/proc/${keeper.pid}/ns/net`],
    proxy: `http://127.0.0.1:${port}`,
    close: () => {
      server.close();
      proxy.closeAllConnections();
      keeper.disconnect();
    },
  };
}
