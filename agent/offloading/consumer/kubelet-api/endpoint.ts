/** The kubelet API of one virtual node: an HTTPS server that authenticates its callers and passes their streams on to the provider. */
import type { IncomingMessage, ServerResponse } from 'node:http';
import * as https from 'node:https';
import type { AddressInfo, Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import type { TLSSocket } from 'node:tls';
import type { ClusterConnection } from '#kube/http/connection.ts';
import { lastWord, passPlain, passUpgrade } from '#kube/http/stream-proxy.ts';
import { AppError, codeOf } from '#shared/errors/app-error.ts';
import { messageOf } from '#shared/errors/message-of.ts';
import type { Log } from '#shared/ports/log.ts';
import type { NodeAccess } from './caller.ts';
import { providerPath, type Route, routeOf, type UsagePage } from './routes.ts';
import type { KeyPair } from './serving-certificate.ts';

interface Target {
  readonly connection: ClusterConnection;
  readonly remoteNamespace: string;
}

export interface EndpointDeps {
  readonly nodeName: string;
  readonly access: NodeAccess;
  /** Where a pod of this node runs; fails with `not_found` for pods of other nodes and namespaces that are not offloaded. */
  readonly target: (namespace: string, pod: string) => Target;
  /** A v1 PodList of this node. */
  readonly podList: (running: boolean, signal: AbortSignal) => Promise<unknown>;
  /** Text of one page; JSON for `summary`. Never fails because the provider has no metrics. */
  readonly usage: (page: UsagePage, signal: AbortSignal) => Promise<string>;
  readonly log: Log;
  /** For the TLS handshake, and for the headers of a request; 10 s unless told. */
  readonly patienceMs?: number;
}

const answers: Readonly<Record<string, number>> = {
  unauthenticated: 401,
  forbidden: 403,
  not_found: 404,
  malformed_request: 400,
};
const statusTexts: Readonly<Record<number, string>> = {
  400: 'Bad Request',
  401: 'Unauthorized',
  403: 'Forbidden',
  404: 'Not Found',
  502: 'Bad Gateway',
};

const defaultPatienceMs = 10_000;

export class KubeletEndpoint {
  readonly #deps: EndpointDeps;
  readonly #server: https.Server;
  readonly #sockets = new Set<Socket>();
  readonly #stop = new AbortController();
  #pair: KeyPair;
  #clientCa: string | undefined;

  constructor(deps: EndpointDeps, pair: KeyPair, clientCa: string | undefined) {
    this.#deps = deps;
    this.#pair = pair;
    this.#clientCa = clientCa;
    const patienceMs = deps.patienceMs ?? defaultPatienceMs;
    this.#server = https.createServer({
      ...this.#context(),
      handshakeTimeout: patienceMs,
      headersTimeout: patienceMs,
      connectionsCheckingInterval: Math.min(1_000, patienceMs),
      // Verified, but not refused, by TLS: a caller without the right certificate shall read why.
      requestCert: true,
      rejectUnauthorized: false,
      minVersion: 'TLSv1.2',
      // A client that has sent everything may still be read to.
      allowHalfOpen: true,
      requestTimeout: 60_000,
    } as https.ServerOptions);
    this.#server.on('request', (request, response) => void this.#serve(request, response));
    this.#server.on('upgrade', (request, socket, head) => void this.#upgrade(request, socket, head));
    this.#server.on('connection', (socket: Socket) => {
      this.#sockets.add(socket);
      socket.once('close', () => this.#sockets.delete(socket));
    });
    this.#server.on('tlsClientError', (error) => deps.log.debug('a TLS handshake failed', { error: error.message }));
  }

  get port(): number {
    return (this.#server.address() as AddressInfo | null)?.port ?? 0;
  }

  /** Sockets that are open, for tests and metrics. */
  get connections(): number {
    return this.#sockets.size;
  }

  /** The first port that is free, from `first` on, of `range` many. */
  async listen(host: string, first: number, range: number): Promise<number> {
    for (let port = first; ; port++) {
      try {
        await new Promise<void>((resolve, reject) => {
          this.#server.once('error', reject);
          this.#server.listen(port, host, () => {
            this.#server.off('error', reject);
            resolve();
          });
        });
        return this.port;
      } catch (error) {
        const taken = (error as NodeJS.ErrnoException).code === 'EADDRINUSE';
        if (taken && port + 1 < first + range) continue;
        throw new AppError(
          'host_unsupported',
          `no kubelet endpoint for node ${this.#deps.nodeName} on ${host}, ports ${first} to ${port}: ${(error as Error).message}`,
          { cause: error },
        );
      }
    }
  }

  /** From the next handshake on. */
  useCertificate(pair: KeyPair): void {
    this.#pair = pair;
    this.#server.setSecureContext(this.#context());
  }

  useClientCa(ca: string | undefined): void {
    if (ca === this.#clientCa) return;
    this.#clientCa = ca;
    this.#server.setSecureContext(this.#context());
  }

  /** Ends every stream. */
  async close(): Promise<void> {
    this.#stop.abort();
    for (const socket of this.#sockets) socket.destroy();
    await new Promise<void>((resolve) => this.#server.close(() => resolve()));
  }

  /**
   * Without a client CA no client certificate can be verified. An empty list would mean the system's CAs, so the endpoint then trusts only itself.
   */
  #context(): { cert: string; key: string; ca: string } {
    return { cert: this.#pair.cert, key: this.#pair.key, ca: this.#clientCa ?? this.#pair.cert };
  }

  /** Authenticates, parses and authorizes; returns what to serve. */
  async #admit(request: IncomingMessage): Promise<Route> {
    const { nodeName, access } = this.#deps;
    const url = request.url ?? '/';
    const method = request.method ?? 'GET';
    if (!URL.canParse(url, 'https://kubelet')) throw new AppError('malformed_request', 'the request target is no path');
    const { authorization } = request.headers;
    const caller = await access.callerOf(request.socket as TLSSocket, authorization, this.#stop.signal);
    await access.require(caller, nodeName, method, url, this.#stop.signal);
    return routeOf(method, url);
  }

  async #serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
    try {
      const route = await this.#admit(request);
      await this.#answer(route, request, response);
    } catch (error) {
      const { status, message } = this.#failure(error);
      if (response.headersSent) response.destroy();
      else text(response, status, message);
    }
  }

  async #answer(route: Route, request: IncomingMessage, response: ServerResponse): Promise<void> {
    switch (route.kind) {
      case 'healthz':
        return text(response, 200, 'ok');
      case 'pods': {
        const list = await this.#deps.podList(route.running, this.#stop.signal);
        response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify(list));
        return;
      }
      case 'usage': {
        const page = await this.#deps.usage(route.page, this.#stop.signal);
        const type = route.page === 'summary' ? 'application/json' : 'text/plain; version=0.0.4; charset=utf-8';
        response.writeHead(200, { 'content-type': type }).end(page);
        return;
      }
      case 'unknown':
        throw new AppError('not_found', `a virtual node has no ${request.method} ${request.url?.split('?')[0]}`);
      case 'stream': {
        if (route.verb !== 'containerLogs') {
          throw new AppError('malformed_request', `${route.verb} needs a connection upgrade (SPDY or WebSocket)`);
        }
        const { connection, remoteNamespace } = this.#deps.target(route.namespace, route.pod);
        await passPlain(connection, providerPath(route, remoteNamespace), request, response, this.#stop.signal);
      }
    }
  }

  async #upgrade(request: IncomingMessage, socket: Duplex, head: Buffer): Promise<void> {
    socket.on('error', () => socket.destroy());
    try {
      const route = await this.#admit(request);
      if (route.kind !== 'stream' || route.verb === 'containerLogs') {
        throw new AppError(
          'not_found',
          `a virtual node upgrades only exec, attach and portForward, not ${request.url?.split('?')[0]}`,
        );
      }
      const { connection, remoteNamespace } = this.#deps.target(route.namespace, route.pod);
      await passUpgrade(
        connection,
        providerPath(route, remoteNamespace),
        { request, client: socket, head },
        this.#stop.signal,
      );
    } catch (error) {
      if (socket.destroyed) return;
      const { status, message } = this.#failure(error);
      const type = 'text/plain; charset=utf-8';
      lastWord(socket, { status, reason: statusTexts[status] ?? 'Error', type, body: Buffer.from(`${message}\n`) });
    }
  }

  #failure(error: unknown): { status: number; message: string } {
    const code = codeOf(error);
    const status = (code && answers[code]) ?? 502;
    const message = messageOf(error);
    if (status === 502 && !this.#stop.signal.aborted) {
      this.#deps.log.warn('a kubelet request could not be passed on', { code, error: message });
    }
    return { status, message: status === 502 ? `the provider could not be asked: ${message}` : message };
  }
}

function text(response: ServerResponse, status: number, message: string): void {
  response
    .writeHead(status, { 'content-type': 'text/plain; charset=utf-8' })
    .end(status === 200 ? message : `${message}\n`);
}

const portsPerBase = 1_000;
/** The same node gets the same first choice of port in every process. FNV-1a. */
export function preferredPort(base: number, nodeName: string): number {
  let hash = 0x811c9dc5;
  for (const byte of Buffer.from(nodeName)) hash = Math.imul(hash ^ byte, 0x01000193) >>> 0;
  return base + (hash % portsPerBase);
}
