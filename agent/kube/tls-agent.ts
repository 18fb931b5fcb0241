/** The keep-alive agents under every API connection: plain, TLS, and TLS through an HTTP CONNECT proxy. */
import * as http from 'node:http';
import * as https from 'node:https';
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

const proxyAnswerMs = 10_000;

const pooling: http.AgentOptions = {
  keepAlive: true,
  keepAliveMsecs: keepAliveMs,
  scheduling: 'lifo',
  timeout: idleSocketMs,
};

/** What to show a proxy that asks for a token of ours: for its nonce, a new one each time. */
export type ProxyToken = (nonce: string) => string;

export function createAgent(server: URL, material: TlsMaterial, proxy?: URL, token?: ProxyToken): http.Agent {
  if (server.protocol === 'http:') return new http.Agent(pooling);
  const options: https.AgentOptions = {
    ...pooling,
    ...(material.ca === undefined ? {} : { ca: material.ca }),
    ...(material.cert === undefined ? {} : { cert: material.cert }),
    ...(material.key === undefined ? {} : { key: material.key }),
    ...(material.servername === undefined ? {} : { servername: material.servername }),
    rejectUnauthorized: material.insecure !== true,
  };
  return proxy === undefined ? new https.Agent(options) : new TunnelAgent(options, proxy, token);
}

type Connected = (error: Error | null, socket: Duplex) => void;

/** Opens each socket through `CONNECT` at a proxy, then speaks TLS with the API server inside. */
class TunnelAgent extends https.Agent {
  readonly #proxy: URL;
  readonly #token: ProxyToken | undefined;
  /** Of the run of the proxy that was met last. */
  #nonce: string | undefined;

  constructor(options: https.AgentOptions, proxy: URL, token: ProxyToken | undefined) {
    super(options);
    this.#proxy = proxy;
    this.#token = token;
  }

  // Node's agent takes the answer through `done` when nothing is returned.
  override createConnection(options: https.RequestOptions, done?: Connected): undefined {
    const fail = (error: Error): void => (done as (error: Error) => void)(error);
    this.#tunnel(`${options.host}:${options.port}`, fail, (socket) => {
      const inner: tls.ConnectionOptions = { ...(options as tls.ConnectionOptions), socket };
      const secured = tls.connect(inner);
      secured.once('error', fail);
      secured.once('secureConnect', () => {
        secured.off('error', fail);
        done?.(null, secured);
      });
    });
    return undefined;
  }

  /** A proxy that asks for a token with a nonce gets one, once; any other proxy never sees any. */
  #tunnel(target: string, fail: (error: Error) => void, opened: (socket: Duplex) => void, isAnswer = false): void {
    const proxy = this.#proxy;
    const secure = proxy.protocol === 'https:';
    const shown = this.#nonce;
    const request = (secure ? https : http).request({
      host: proxy.hostname.replace(/^\[|\]$/g, ''),
      port: proxy.port || (secure ? 443 : 80),
      method: 'CONNECT',
      path: target,
      headers: { host: target, ...this.#credentials(shown) },
      agent: false,
      timeout: proxyAnswerMs,
    });
    request.once('timeout', () => request.destroy(new Error(`the proxy ${proxy.host} did not answer within 10 s`)));
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

  #credentials(nonce: string | undefined): Record<string, string> {
    const { username, password } = this.#proxy;
    if (username !== '') {
      const login = `${decodeURIComponent(username)}:${decodeURIComponent(password)}`;
      return { 'proxy-authorization': `Basic ${Buffer.from(login).toString('base64')}` };
    }
    if (nonce === undefined || this.#token === undefined) return {};
    return { 'proxy-authorization': `Bearer ${this.#token(nonce)}` };
  }
}

/** The nonce of a proxy that takes our tokens. */
export const challengeOf = ({ statusCode, headers }: http.IncomingMessage): string | undefined =>
  statusCode === 407
    ? /^Bearer realm="isthmus", nonce="([\w-]{16,128})"$/.exec(headers['proxy-authenticate'] ?? '')?.[1]
    : undefined;
