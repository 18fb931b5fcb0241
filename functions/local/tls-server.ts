/** The HTTPS server of the local broker: what it listens with, and how a connection that never becomes a request ends. */
import type { IncomingMessage } from 'node:http';
import { createServer, type Server } from 'node:https';
import type { Socket } from 'node:net';
import { limitKey, unmapped } from '#shared/domain/socket-address.ts';
import { answerBrokenRequest } from './http-gateway.ts';

/** Without a complete TLS handshake after this, the connection is closed. */
const handshakeMs = 10_000;

/** A connection on which no request has begun, and no answer is under way, after this: longer than the pauses of agents. */
const silentMs = 75_000;
/** Open connections: in all, and from one address, or /64 of IPv6. Agents of one site share an address. */
const maxConnections = 20_000;
const maxFromOneAddress = 5_000;

export interface TlsServerOptions {
  /** Milliseconds; 10,000 unless told. */
  readonly handshakeMs?: number;
  /** Milliseconds without a request, or in which nothing of an answer is taken; 75,000 unless told. */
  readonly silentMs?: number;
  readonly maxConnections?: number;
  readonly maxFromOneAddress?: number;
  /** Addresses that many clients share, so that their number is not limited. */
  readonly isShared?: (address: string) => boolean;
}

/** Certificates are set with `setSecureContext`. */
export function createTlsServer(options: TlsServerOptions = {}): Server {
  const server = createServer({ handshakeTimeout: options.handshakeMs ?? handshakeMs });
  // Idle connections outlive the pauses of agents, so that a request never meets a connection that is just being closed.
  server.keepAliveTimeout = options.silentMs ?? silentMs;
  // An answer that its client does not read stays in memory with its connection. Longer than any wait for news; an upgraded connection has a deadline of its own.
  server.timeout = options.silentMs ?? silentMs;
  // node:http times requests that began; one that never begins is ours to end.
  endSilent(server, options.silentMs ?? silentMs);
  limitConnections(server, options);
  // Before node:https passes it on as a clientError: an answer would wait for the handshake for ever, and its descriptor with it.
  server.prependListener('tlsClientError', (_error, socket) => socket.destroy());
  server.on('clientError', answerBrokenRequest);
  return server;
}

/** What stops the timer of a connection that has sent no request yet. */
const silenceTimers = new WeakMap<Socket, () => void>();

/** Of a connection behind the handshake: the first request must begin in time, and a WebSocket takes the connection over. */
function endSilent(server: Server, afterMs: number): void {
  server.on('secureConnection', (socket) => {
    const silent = setTimeout(() => socket.destroy(), afterMs).unref();
    const heard = (): void => clearTimeout(silent);
    socket.once('close', heard);
    silenceTimers.set(socket, heard);
  });
  const hear = ({ socket }: IncomingMessage): void => silenceTimers.get(socket)?.();
  server.prependListener('request', hear);
  server.prependListener('upgrade', hear);
}

/** What is beyond a limit is closed before a handshake is spent on it. */
function limitConnections(server: Server, options: TlsServerOptions): void {
  const most = options.maxFromOneAddress ?? maxFromOneAddress;
  const counts = new Map<string, number>();
  server.maxConnections = options.maxConnections ?? maxConnections;
  server.prependListener('connection', (socket: Socket) => {
    const from = unmapped(socket.remoteAddress ?? '');
    const key = limitKey(from);
    const count = (counts.get(key) ?? 0) + 1;
    counts.set(key, count);
    socket.once('close', () => {
      const left = (counts.get(key) ?? 1) - 1;
      if (left === 0) counts.delete(key);
      else counts.set(key, left);
    });
    if (count > most && !options.isShared?.(from)) socket.destroy();
  });
}
