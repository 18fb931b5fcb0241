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
const idleSocketMs = 45_000;

const pooling: http.AgentOptions = {
  keepAlive: true,
  keepAliveMsecs: 15_000,
  scheduling: 'lifo',
  timeout: idleSocketMs,
};

export function createAgent(server: URL, material: TlsMaterial, proxy?: URL): http.Agent {
  if (server.protocol === 'http:') return new http.Agent(pooling);
  const options: https.AgentOptions = {
    ...pooling,
    ...(material.ca === undefined ? {} : { ca: material.ca }),
    ...(material.cert === undefined ? {} : { cert: material.cert }),
    ...(material.key === undefined ? {} : { key: material.key }),
    ...(material.servername === undefined ? {} : { servername: material.servername }),
    rejectUnauthorized: material.insecure !== true,
  };
  return proxy === undefined ? new https.Agent(options) : new TunnelAgent(options, proxy);
}

type Connected = (error: Error | null, socket: Duplex) => void;

/** Opens each socket through `CONNECT` at a proxy, then speaks TLS with the API server inside. */
class TunnelAgent extends https.Agent {
  readonly #proxy: URL;

  constructor(options: https.AgentOptions, proxy: URL) {
    super(options);
    this.#proxy = proxy;
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

  #tunnel(target: string, fail: (error: Error) => void, opened: (socket: Duplex) => void): void {
    const proxy = this.#proxy;
    const secure = proxy.protocol === 'https:';
    const headers: Record<string, string> = { host: target };
    if (proxy.username !== '') {
      const login = `${decodeURIComponent(proxy.username)}:${decodeURIComponent(proxy.password)}`;
      headers['proxy-authorization'] = `Basic ${Buffer.from(login).toString('base64')}`;
    }
    const request = (secure ? https : http).request({
      host: proxy.hostname,
      port: proxy.port || (secure ? 443 : 80),
      method: 'CONNECT',
      path: target,
      headers,
      agent: false,
      timeout: 10_000,
    });
    request.once('timeout', () => request.destroy(new Error(`the proxy ${proxy.host} did not answer within 10 s`)));
    request.once('error', fail);
    request.once('connect', (reply, socket) => {
      if (reply.statusCode === 200) return opened(socket);
      socket.destroy();
      fail(
        new AppError('kube_unreachable', `the proxy ${proxy.host} answered ${reply.statusCode} to CONNECT ${target}`),
      );
    });
    request.end();
  }
}
