/**
 * The front door: a listener that ends TLS, knows a consumer by a certificate of our own authority, and passes its requests on to the API server with a token of
 * that consumer's account. It needs no right to impersonate: what a consumer may do is what its account may.
 */

import { constants } from 'node:crypto';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { createServer } from 'node:https';
import type { AddressInfo, Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import type { TLSSocket } from 'node:tls';
import { digestOf } from '#agent/peering/credentials/front-door.ts';
import type { ServingCertificate } from '#agent/pki/webhook-certificate.ts';
import type { ClusterConnection } from '#kube/http/connection.ts';
import { endToEndOf, lastWord, passPlain, passUpgrade } from '#kube/http/stream-proxy.ts';
import { createAgent } from '#kube/http/tls.ts';
import { limitKey } from '#shared/domain/socket-address.ts';
import type { Clock } from '#shared/ports/clock.ts';
import type { Log } from '#shared/ports/log.ts';
import type { AccountTokens } from './account-tokens.ts';
import type { DoorCaller } from './door-callers.ts';
import { TokenBuckets } from './token-buckets.ts';

export interface FrontDoorOptions {
  readonly serving: ServingCertificate;
  /** Of the authority whose certificates let in, PEM. */
  readonly authority: string;
  /** The consumer that this certificate stands for now, by the digest of its DER. Asked at each request. */
  readonly callerOf: (digest: string) => DoorCaller | undefined;
  readonly tokens: Pick<AccountTokens, 'of' | 'forget'>;
  /** This cluster's API server, and the CA that it is verified with. */
  readonly upstream: { readonly server: URL; readonly ca: string | undefined };
  readonly port: number;
  readonly host?: string;
  readonly clock: Pick<Clock, 'now'>;
  readonly log: Log;
  /** Of one consumer at a time. */
  readonly maxRequests?: number;
}

export interface FrontDoor {
  readonly port: number;
  /** Cuts the connections of all callers that `callerOf` knows no more, or whose certificate has ended. */
  retain(): void;
  /** From now on, for new connections. */
  serve(serving: ServingCertificate): void;
  close(): Promise<void>;
}

const limits = {
  headerBytes: 16_384,
  headersMs: 10_000,
  /** For a whole request with its body; API servers take bodies of at most 3 MiB. */
  requestMs: 60_000,
  handshakeMs: 10_000,
  keepAliveMs: 90_000,
  connections: 4096,
  requests: 1024,
} as const;

interface Refusal {
  readonly code: number;
  readonly reason: string;
  readonly message: string;
}

/** As an API server says it, so that clients show it. */
const statusOf = ({ code, reason, message }: Refusal): Buffer =>
  Buffer.from(
    `${JSON.stringify({ kind: 'Status', apiVersion: 'v1', metadata: {}, status: 'Failure', message, reason, code })}\n`,
  );

/** Headers about the way of a request and its record in the audit log, which the API server believes. */
const provenance = /^(x-forwarded-.*|x-real-ip|forwarded|audit-id)$/;

/** Answered by a Service, pod or node behind the API server, whose refusals say nothing of the caller's token. */
const relayed = /^\/api\/v1\/(namespaces\/[^/]+\/(pods|services)|nodes)\/[^/]+\/proxy(\/|$)/;

function isRelayed(url: string): boolean {
  const [path = ''] = url.split('?');
  try {
    return relayed.test(decodeURIComponent(path));
  } catch {
    return true; // bytes that are no UTF-8 are legal to the API server, and a consumer chooses them
  }
}

export async function openFrontDoor(options: FrontDoorOptions): Promise<FrontDoor> {
  const { authority, callerOf, tokens, clock, log, maxRequests = limits.requests } = options;
  const { server: origin, ca } = options.upstream;
  const agent = createAgent(origin, { ...(ca !== undefined && { ca }) });
  /** By socket, the digest of its certificate, and when that ends. */
  const open = new Map<TLSSocket, { readonly digest: string; readonly endMs: number }>();
  const running = new Map<string, number>();
  const handshakes = new TokenBuckets({ burst: 300, perSecond: 20 }, 4096);
  const logged = new TokenBuckets({ burst: 1, perSecond: 1 / 60 }, 256);
  const closing = new AbortController();

  const material = ({ certificate, privateKey }: ServingCertificate) => ({
    ...{ cert: certificate, key: privateKey, ca: authority },
    minVersion: 'TLSv1.2' as const,
    // A resumed session would bring a certificate that was verified once and is not shown again.
    secureOptions: constants.SSL_OP_NO_TICKET,
  });
  const server = createServer({
    ...material(options.serving),
    ...{ requestCert: true, rejectUnauthorized: true, handshakeTimeout: limits.handshakeMs },
    ...{ maxHeaderSize: limits.headerBytes, headersTimeout: limits.headersMs, requestTimeout: limits.requestMs },
    ...{ keepAliveTimeout: limits.keepAliveMs, noDelay: true },
  });
  server.maxConnections = limits.connections;

  /** A request with the token of its caller. No certificate of the agent goes along, which would win over the token. */
  const asCaller = (token: string): ClusterConnection => ({
    ...{ server: origin, ca, agent, namespace: undefined },
    headers: () => ({ authorization: `Bearer ${token}` }),
    async authorize() {},
    close() {},
  });

  function say(refusal: Refusal, from: string, consumer: string | undefined): Refusal {
    if (logged.take(`${limitKey(from)} ${refusal.reason}`, clock.now()))
      log.warn('front door refused', { from, status: refusal.code, why: refusal.message, consumer });
    return refusal;
  }

  /** TLS looks at the end of a certificate only when the connection begins. */
  const callerAt = (socket: TLSSocket): DoorCaller | undefined => {
    const shown = open.get(socket);
    return shown !== undefined && shown.endMs > clock.now() ? callerOf(shown.digest) : undefined;
  };

  /** The consumer that asks, or why it is refused. */
  function judge(request: IncomingMessage): DoorCaller | Refusal {
    const socket = request.socket as TLSSocket;
    const from = socket.remoteAddress ?? '';
    const caller = callerAt(socket);
    if (caller === undefined) {
      const message =
        'this certificate is not, or no longer, that of a consumer that comes by the front door of this cluster: it may have ended, its Tenant may be gone, drained or not annotated, or its credential deleted';
      return say({ code: 401, reason: 'Unauthorized', message }, from, undefined);
    }
    const { url = '' } = request;
    if (!url.startsWith('/') || url.startsWith('//')) {
      const message = 'the target of the request is no path: accepted are requests to the API server of this cluster';
      return say({ code: 400, reason: 'BadRequest', message }, from, caller.consumer);
    }
    const foreign = Object.keys(request.headers).find((name) => /^(impersonate|x-remote)-/.test(name));
    if (foreign !== undefined) {
      const message = `the header ${foreign} is refused: a consumer acts in its own name`;
      return say({ code: 403, reason: 'Forbidden', message }, from, caller.consumer);
    }
    if ((running.get(caller.consumer) ?? 0) >= maxRequests) {
      const message = `a consumer has at most ${maxRequests} requests at a time`;
      return say({ code: 429, reason: 'TooManyRequests', message }, from, caller.consumer);
    }
    return caller;
  }

  /** From where it comes is said by the connection, and by nothing that the caller sends. */
  const forwardedFor = (request: IncomingMessage) => ({ 'x-forwarded-for': request.socket.remoteAddress ?? '' });
  const headersOf = (request: IncomingMessage) => ({
    ...Object.fromEntries(Object.entries(endToEndOf(request)).filter(([name]) => !provenance.test(name))),
    ...forwardedFor(request),
  });
  const forgetWhenRefused = (request: IncomingMessage, caller: DoorCaller) => (status: number) => {
    if (status === 401 && !isRelayed(request.url ?? '/')) tokens.forget(caller);
  };

  /** Counts a request of `consumer` while `work` goes on. */
  async function counted(consumer: string, work: () => Promise<void>): Promise<void> {
    running.set(consumer, (running.get(consumer) ?? 0) + 1);
    try {
      await work();
    } finally {
      const left = (running.get(consumer) ?? 1) - 1;
      if (left > 0) running.set(consumer, left);
      else running.delete(consumer);
    }
  }

  const unavailable = (error: unknown, caller: DoorCaller): Refusal => {
    log.warn('front door could not pass a request on', {
      consumer: caller.consumer,
      why: error instanceof Error ? error.message : String(error),
    });
    return { code: 503, reason: 'ServiceUnavailable', message: 'the API server does not answer the front door' };
  };

  function refuse(response: ServerResponse, refusal: Refusal): void {
    if (response.headersSent || response.destroyed) return void response.destroy();
    const body = statusOf(refusal);
    response.writeHead(refusal.code, {
      ...{ 'content-type': 'application/json', 'content-length': body.length, connection: 'close' },
      ...(refusal.code === 429 && { 'retry-after': '1' }),
    });
    response.end(body);
  }

  server.on('request', (request, response) => {
    const caller = judge(request);
    if ('code' in caller) return refuse(response, caller);
    void counted(caller.consumer, async () => {
      try {
        const connection = asCaller(await tokens.of(caller));
        await passPlain(connection, request.url ?? '/', request, response, closing.signal, {
          headers: headersOf(request),
          answered: forgetWhenRefused(request, caller),
        });
      } catch (error) {
        refuse(response, unavailable(error, caller));
      }
    });
  });

  function refuseUpgrade(socket: Duplex, refusal: Refusal): void {
    if (socket.destroyed) return;
    const { code: status, reason } = refusal;
    lastWord(socket, { status, reason, type: 'application/json', body: statusOf(refusal) });
  }

  server.on('upgrade', (request, socket, head) => {
    socket.on('error', () => socket.destroy());
    const caller = judge(request);
    if ('code' in caller) return refuseUpgrade(socket, caller);
    void counted(caller.consumer, async () => {
      try {
        const connection = asCaller(await tokens.of(caller));
        const passed = { headers: forwardedFor(request), answered: forgetWhenRefused(request, caller) };
        await passUpgrade(connection, request.url ?? '/', { request, client: socket, head, passed }, closing.signal);
      } catch (error) {
        refuseUpgrade(socket, unavailable(error, caller));
      }
    });
  });

  // Before TLS: a handshake costs more than a refusal.
  const raw = new Set<Duplex>();
  server.on('connection', (socket: Socket) => {
    raw.add(socket);
    socket.once('close', () => raw.delete(socket));
    if (!handshakes.take(limitKey(socket.remoteAddress ?? ''), clock.now())) socket.destroy();
  });
  server.on('secureConnection', (socket) => {
    const { raw: certificate, valid_to: end } = socket.getPeerCertificate();
    if (certificate === undefined) return void socket.destroy();
    open.set(socket, { digest: digestOf(certificate), endMs: Date.parse(end) });
    socket.once('close', () => open.delete(socket));
  });
  server.on('tlsClientError', (_error, socket) => void socket.destroy());

  await new Promise<void>((resolve, reject) => {
    server.once('error', reject);
    server.listen(options.port, options.host, resolve);
  });
  return {
    port: (server.address() as AddressInfo).port,
    retain() {
      for (const socket of [...open.keys()]) if (callerAt(socket) === undefined) socket.destroy();
    },
    serve: (serving) => server.setSecureContext(material(serving)),
    async close() {
      closing.abort();
      const closed = new Promise((resolve) => server.close(resolve));
      for (const socket of [...raw]) socket.destroy();
      await closed;
      agent.destroy();
    },
  };
}
