/** The keep-alive agents under every API connection: plain, TLS, and TLS through an HTTP CONNECT proxy. */
import * as http from 'node:http';
import * as https from 'node:https';
import net from 'node:net';
import type { Duplex } from 'node:stream';
import * as tls from 'node:tls';
import { AppError } from '#shared/errors/app-error.ts';

export interface TlsMaterial {
  readonly ca?: string;
  readonly cert?: string;
  readonly key?: string;
  /** Name to verify the certificate against, when it is not the host of the URL. */
  readonly servername?: string;
  readonly insecure?: boolean;
}

/** Sockets idle for longer are closed here: the API server closes them after 90 s, and a request on a dying socket fails. */
export const idleSocketMs = 45_000;
/** TCP asks the other side for a sign of life. */
export const keepAliveMs = 15_000;

/** Deadline for a proxy to open a tunnel, and then for the TLS handshake with the server behind it. */
const openingMs = 10_000;

const pooling: http.AgentOptions = {
  keepAlive: true,
  keepAliveMsecs: keepAliveMs,
  scheduling: 'lifo',
  timeout: idleSocketMs,
};

/** What to show a proxy that asks for a token of ours: for its nonce, a new one each time. */
export type ProxyToken = (nonce: string) => Promise<string>;

/** Where a proxy stands before the server. */
export interface ProxyRoute {
  readonly proxy: URL;
  readonly token?: ProxyToken | undefined;
  readonly openingMs?: number;
}

export function createAgent(server: URL, material: TlsMaterial, route?: ProxyRoute): http.Agent {
  if (server.protocol === 'http:') return new http.Agent(pooling);
  const options: https.AgentOptions = {
    ...pooling,
    ...(material.ca === undefined ? {} : { ca: material.ca }),
    ...(material.cert === undefined ? {} : { cert: material.cert }),
    ...(material.key === undefined ? {} : { key: material.key }),
    ...(material.servername === undefined ? {} : { servername: material.servername }),
    rejectUnauthorized: material.insecure !== true,
  };
  return route === undefined ? new SecureAgent(options) : new TunnelAgent(options, route);
}

/** The arguments of an agent's `createConnection`, for a connection beside the agent's own pool. */
export function connectionOptions(agent: http.Agent, server: URL): Readonly<Record<string, unknown>> {
  const secure = server.protocol === 'https:';
  const host = hostOf(server);
  // Without the agent's limit on idle sockets: here is no pool that would keep it.
  const { timeout: _, ...options } = (agent as http.Agent & { options: Record<string, unknown> }).options;
  const named = secure && options.servername === undefined ? { servername: net.isIP(host) ? '' : host } : {};
  return { ...options, host, port: Number(server.port) || (secure ? 443 : 80), ...named };
}

export const hostOf = ({ hostname }: URL): string => hostname.replace(/^\[|\]$/g, '');

type Connected = (error: Error | null, socket: Duplex) => void;

/**
 * One TLS context for all sockets: Node makes one for each, which parses the authority, the certificate and the key again. With client and server in
 * one process a connection takes 4.2 ms of a processor instead of 6.5, and a controller has one for each of its watches.
 */
class SecureAgent extends https.Agent {
  #context: tls.SecureContext | undefined;

  override createConnection(options: https.RequestOptions, done?: Connected): Duplex | null | undefined {
    return super.createConnection(this.secured(options), done);
  }

  /** Throws when the PEM of the material cannot be read, as `tls.connect` does. */
  protected secured(options: https.RequestOptions): https.RequestOptions {
    this.#context ??= tls.createSecureContext(this.options as tls.SecureContextOptions);
    return { ...options, secureContext: this.#context } as https.RequestOptions;
  }
}

/** One `CONNECT`. */
interface Attempt {
  readonly target: string;
  /** The nonce that the credentials are for. */
  readonly shown: string | undefined;
  readonly credentials: Readonly<Record<string, string>>;
  readonly isAnswer: boolean;
}

/** Opens each socket through `CONNECT` at a proxy, then speaks TLS with the API server inside. */
class TunnelAgent extends SecureAgent {
  readonly #proxy: URL;
  readonly #token: ProxyToken | undefined;
  readonly #openingMs: number;
  /** Of the run of the proxy that was met last. */
  #nonce: string | undefined;

  constructor(options: https.AgentOptions, route: ProxyRoute) {
    super(options);
    this.#proxy = route.proxy;
    this.#token = route.token;
    this.#openingMs = route.openingMs ?? openingMs;
  }

  // Node's agent takes the answer through `done` when nothing is returned.
  override createConnection(options: https.RequestOptions, done?: Connected): undefined {
    const fail = (error: Error): void => (done as (error: Error) => void)(error);
    const inner = this.secured(options) as tls.ConnectionOptions;
    this.#tunnel(`${options.host}:${options.port}`, fail, (socket) => {
      const secured = tls.connect({ ...inner, socket });
      const limitMs = this.#openingMs;
      const late = (): void =>
        void secured.destroy(
          new Error(`no server answers behind the proxy ${this.#proxy.host} within ${limitMs / 1000} s`),
        );
      secured.once('error', fail);
      // The caller has no socket yet that it could end.
      secured.setTimeout(limitMs, late);
      secured.once('secureConnect', () => {
        secured.setTimeout(0, late);
        secured.off('error', fail);
        done?.(null, secured);
      });
    });
    return undefined;
  }

  /** A proxy that asks for a token with a nonce gets one, once; any other proxy never sees any. */
  #tunnel(target: string, fail: (error: Error) => void, opened: (socket: Duplex) => void, isAnswer = false): void {
    const shown = this.#nonce;
    this.#credentials(shown)
      .then((credentials) => this.#connect({ target, shown, credentials, isAnswer }, fail, opened))
      .catch(fail);
  }

  #connect(
    { target, shown, credentials, isAnswer }: Attempt,
    fail: (error: Error) => void,
    opened: (socket: Duplex) => void,
  ): void {
    const proxy = this.#proxy;
    const secure = proxy.protocol === 'https:';
    const request = (secure ? https : http).request({
      host: hostOf(proxy),
      port: proxy.port || (secure ? 443 : 80),
      method: 'CONNECT',
      path: target,
      headers: { host: target, ...credentials },
      agent: false,
      timeout: this.#openingMs,
    });
    const late = `the proxy ${proxy.host} did not answer within ${this.#openingMs / 1000} s`;
    request.once('timeout', () => request.destroy(new Error(late)));
    // Not `once`: a socket may fail again after it was given up, and an unheard error ends the process.
    request.on('error', fail);
    request.once('connect', (reply, socket) => {
      request.setTimeout(0);
      if (reply.statusCode === 200) return opened(socket);
      socket.on('error', () => undefined);
      socket.destroy();
      const nonce = this.#token === undefined ? undefined : challengeOf(reply);
      if (nonce !== undefined && nonce !== shown && !isAnswer) {
        this.#nonce = nonce;
        return this.#tunnel(target, fail, opened, true);
      }
      fail(
        new AppError('kube_unreachable', `the proxy ${proxy.host} answered ${reply.statusCode} to CONNECT ${target}`),
      );
    });
    request.end();
  }

  async #credentials(nonce: string | undefined): Promise<Record<string, string>> {
    const { username, password } = this.#proxy;
    if (username !== '') {
      const login = `${decodeURIComponent(username)}:${decodeURIComponent(password)}`;
      return { 'proxy-authorization': `Basic ${Buffer.from(login).toString('base64')}` };
    }
    if (nonce === undefined || this.#token === undefined) return {};
    return { 'proxy-authorization': `Bearer ${await this.#token(nonce)}` };
  }
}

/** The nonce of a proxy that takes our tokens. */
export const challengeOf = ({ statusCode, headers }: http.IncomingMessage): string | undefined =>
  statusCode === 407
    ? /^Bearer realm="isthmus", nonce="([\w-]{16,128})"$/.exec(headers['proxy-authenticate'] ?? '')?.[1]
    : undefined;
