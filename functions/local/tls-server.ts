/** The HTTPS server of the local broker: what it listens with, and how a connection that never becomes a request ends. */
import { createServer, type Server } from 'node:https';
import { answerBrokenRequest } from './http-gateway.ts';

/** Without a complete TLS handshake after this, the connection is closed. */
const handshakeMs = 10_000;

export interface TlsServerOptions {
  /** Milliseconds; 10,000 unless told. */
  readonly handshakeMs?: number;
}

/** Certificates are set with `setSecureContext`. */
export function createTlsServer(options: TlsServerOptions = {}): Server {
  const server = createServer({ handshakeTimeout: options.handshakeMs ?? handshakeMs });
  // Idle connections outlive the pauses of agents, so that a request never meets a connection that is just being closed.
  server.keepAliveTimeout = 75_000;
  // Before node:https passes it on as a clientError: an answer would wait for the handshake for ever, and its descriptor with it.
  server.prependListener('tlsClientError', (_error, socket) => socket.destroy());
  server.on('clientError', answerBrokenRequest);
  return server;
}
