/**
 * The listener of the proxy: reads one request per connection, asks the authorizer, then joins the caller with the API server; TLS passes through
 * untouched. A consumer whose certificate or token has ended gets the next one here. A certificate is no secret, a token is sealed: both are useless
 * without the consumer's key.
 */
import { createServer, type IncomingMessage, type ServerResponse, STATUS_CODES } from 'node:http';
import { type AddressInfo, connect, type Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import { join } from '#kube/http/stream-proxy.ts';
import { limitKey } from '#shared/domain/socket-address.ts';
import type { Clock } from '#shared/ports/clock.ts';
import type { Log } from '#shared/ports/log.ts';
import type { ProxyAuthorizer } from './authorizer.ts';
import { TokenBuckets } from './token-buckets.ts';

export interface ApiProxyOptions {
  readonly authorizer: Pick<ProxyAuthorizer, 'authorize'>;
  /** Sent with every 407, so that a consumer can make a token for this run. */
  readonly nonce: string;
  /** The certificate (PEM) or sealed token that a consumer has now; absent: it has none. */
  readonly credentialFor: (consumer: string) => string | undefined;
  /** Where this cluster's API server is; the caller's name for it is not used. */
  readonly upstream: { readonly host: string; readonly port: number };
  readonly port: number;
  readonly host?: string;
  readonly clock: Pick<Clock, 'now'>;
  readonly log: Log;
  /** Of one consumer at a time. */
  readonly maxTunnels?: number;
  /** For the whole request; then the caller is let go. */
  readonly headersMs?: number;
}

export interface ApiProxy {
  readonly port: number;
  /** Tunnels that are open, by consumer. */
  open(): ReadonlyMap<string, number>;
  /** Cuts what this is false for. `byAddress`: opened without a token. */
  retain(mayStay: (consumer: string, byAddress: boolean) => boolean): void;
  /** Closes the listener and cuts all tunnels. */
  close(): Promise<void>;
}

const limits = { headerBytes: 8192, headersMs: 5_000, dialMs: 10_000, connections: 4096, tunnels: 1024 } as const;

export async function startApiProxy(options: ApiProxyOptions): Promise<ApiProxy> {
  const {
    authorizer,
    nonce,
    upstream,
    clock,
    log,
    maxTunnels = limits.tunnels,
    headersMs = limits.headersMs,
  } = options;
  const tunnels = new Map<string, Set<Duplex>>();
  const byAddress = new WeakSet<Duplex>();
  /** Before a tunnel is open; the server forgets a socket once it has upgraded. */
  const pending = new Set<Duplex>();
  const logged = new TokenBuckets({ burst: 1, perSecond: 1 / 60 }, 256);

  const server = createServer({
    maxHeaderSize: limits.headerBytes,
    headersTimeout: headersMs,
    requestTimeout: headersMs,
    connectionsCheckingInterval: Math.min(1_000, headersMs),
    keepAlive: false,
  });
  server.maxConnections = limits.connections;

  async function authorize(request: IncomingMessage, from: string): ReturnType<ProxyAuthorizer['authorize']> {
    const { method = '', url = '' } = request;
    const all = request.headersDistinct['proxy-authorization'] ?? [];
    // None is another thing than several: a caller without a token may be let in by its address, and one whose token cannot be told may not.
    const authorization = all.length > 1 ? all.join(', ') : all[0];
    const verdict = await authorizer.authorize({ method, target: url, authorization, from });
    if (verdict.pass || (authorization === undefined && verdict.status === 407)) return verdict;
    // Logged once a minute per address and verdict: a caller that is refused constantly must not fill the log.
    if (logged.take(`${limitKey(from)} ${verdict.reason}`, clock.now()))
      log.warn('proxy refused', { from, status: verdict.status, why: verdict.reason, consumer: verdict.consumer });
    return verdict;
  }

  const challenge = `Bearer realm="isthmus", nonce="${nonce}"`;

  function answer(socket: Duplex, status: number, text: string): void {
    if (socket.destroyed || !socket.writable) return void socket.destroy();
    const body = `${text}\n`;
    const challengeHeader = status === 407 ? `Proxy-Authenticate: ${challenge}\r\n` : '';
    socket.on('error', () => socket.destroy());
    socket.end(
      `HTTP/1.1 ${status} ${STATUS_CODES[status]}\r\n${challengeHeader}Content-Type: text/plain\r\nContent-Length: ${body.length}\r\nConnection: close\r\n\r\n${body}`,
      // The rest of the caller's input is discarded.
      () => socket.destroy(),
    );
  }

  const broken = (socket: Duplex) => (error: unknown) => {
    log.error('proxy could not judge a request', error);
    socket.destroy();
  };

  async function onRequest(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const verdict = await authorize(request, request.socket.remoteAddress ?? '');
    const headers = { connection: 'close', 'content-type': 'text/plain' };
    if (!verdict.pass) {
      const challengeHeader = verdict.status === 407 && { 'proxy-authenticate': challenge };
      return void response.writeHead(verdict.status, { ...headers, ...challengeHeader }).end(`${verdict.reason}\n`);
    }
    const credential = options.credentialFor(verdict.consumer);
    if (credential !== undefined) return void response.writeHead(200, headers).end(credential);
    response.writeHead(404, headers).end('there are no credentials for you\n');
  }
  server.on('request', (request, response) => void onRequest(request, response).catch(broken(request.socket)));
  server.on('clientError', (error: NodeJS.ErrnoException, socket) =>
    answer(socket, error.code === 'HPE_HEADER_OVERFLOW' ? 431 : 400, 'this request cannot be read'),
  );

  async function onConnect(request: IncomingMessage, socket: Socket, head: Buffer): Promise<void> {
    // Node listens no more to a socket that it has handed over.
    socket.on('error', () => socket.destroy());
    const verdict = await authorize(request, socket.remoteAddress ?? '');
    if (socket.destroyed) return;
    if (!verdict.pass) return answer(socket, verdict.status, verdict.reason);
    const { consumer } = verdict;
    if ((tunnels.get(consumer)?.size ?? 0) >= maxTunnels)
      return answer(socket, 429, `a consumer has at most ${maxTunnels} connections`);
    if (verdict.byAddress) byAddress.add(socket);
    dial(consumer, socket, head);
  }
  server.on('connect', (request, socket, head) => {
    void onConnect(request, socket as Socket, head).catch(broken(socket));
  });

  function dial(consumer: string, client: Socket, head: Buffer): void {
    const mine = tunnels.get(consumer) ?? new Set();
    tunnels.set(consumer, mine);
    mine.add(client);
    const forget = (): void => {
      mine.delete(client);
      if (mine.size === 0 && tunnels.get(consumer) === mine) tunnels.delete(consumer);
    };
    client.once('close', forget);
    const giveUp = (): void => void target.destroy();
    const target = connect({ ...upstream, noDelay: true, timeout: limits.dialMs });
    client.on('error', giveUp);
    client.once('close', giveUp);
    const fail = (): void => {
      target.destroy();
      answer(client, 502, 'the API server does not answer');
    };
    target.once('timeout', fail);
    target.once('error', fail);
    // The proxy connects before it answers 200: a consumer whose stream breaks after a 200 would look for the fault at the API server.
    target.once('connect', () => {
      target.off('error', fail).off('timeout', fail).setTimeout(0);
      client.off('close', giveUp);
      client.write('HTTP/1.1 200 Connection Established\r\n\r\n');
      if (head.length > 0) target.write(head);
      void join(client, target);
    });
  }

  server.on('connection', (socket) => {
    pending.add(socket);
    socket.once('close', () => pending.delete(socket));
  });
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject);
    server.listen(options.port, options.host, resolve);
  });
  return {
    port: (server.address() as AddressInfo).port,
    open: () => new Map([...tunnels].map(([consumer, sockets]) => [consumer, sockets.size])),
    retain(mayStay) {
      for (const [consumer, sockets] of tunnels)
        for (const socket of [...sockets]) if (!mayStay(consumer, byAddress.has(socket))) socket.destroy();
    },
    async close() {
      const closed = new Promise((resolve) => server.close(resolve));
      for (const socket of [...pending]) socket.destroy();
      await closed;
    },
  };
}
