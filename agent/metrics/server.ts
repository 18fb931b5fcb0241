/**
 * Serves `/metrics`. Usually over TLS with a certificate of its own, to callers whose bearer token the cluster knows (TokenReview) and whose holder
 * may `get` the path (SubjectAccessReview), as controller-runtime does it; open and over plain HTTP only where that was asked for.
 */
import http from 'node:http';
import https from 'node:https';
import type { AddressInfo } from 'node:net';
import { issueServingCertificate } from '#agent/pki/webhook-certificate.ts';
import { AccessReviews } from '#agent/runtime/access-reviews.ts';
import type { KubeApi } from '#kube/model/types.ts';
import { codeOf } from '#shared/errors/app-error.ts';
import { messageOf } from '#shared/errors/message-of.ts';
import type { Registry } from '#shared/metrics/registry.ts';
import type { Clock } from '#shared/ports/clock.ts';
import type { Log } from '#shared/ports/log.ts';
import type { MetricsSettings } from './settings.ts';

export interface MetricsServerDeps {
  readonly registry: Registry;
  readonly api: KubeApi;
  readonly clock: Clock;
  readonly log: Log;
}

const metricsPath = '/metrics';

/** As long as controller-runtime remembers them: a scraper that comes twice a minute costs the API server one request a minute. */
const remembered = { allowedMs: 60_000, deniedMs: 30_000 } as const;
const patienceMs = 5_000;
const maxConnections = 64;
/** Tokens that the cluster does not know cost it a request each: so many are asked about at a time. */
const maxReviews = 4;

/** Fails when the port is taken. The server ends with `signal`. */
export async function serveMetrics(
  { host, port, access }: MetricsSettings,
  deps: MetricsServerDeps,
  signal: AbortSignal,
): Promise<{ readonly port: number }> {
  const admits = access === 'open' ? async () => undefined : gateOf(deps);
  const answer: http.RequestListener = (request, response) => {
    const refuse = (status: number, why: string): void => {
      response.writeHead(status, {
        'content-type': 'text/plain; charset=utf-8',
        connection: 'close',
        ...(status === 401 && { 'www-authenticate': 'Bearer' }),
      });
      response.end(`${why}\n`);
    };
    if ((request.url ?? '').split('?', 1)[0] !== metricsPath) return refuse(404, `there is only ${metricsPath}`);
    if (request.method !== 'GET' && request.method !== 'HEAD') return refuse(405, `GET ${metricsPath}`);
    admits(request.headers.authorization).then(
      (refusal) => {
        if (refusal !== undefined) return refuse(...refusal);
        response.setHeader('content-type', 'text/plain; version=0.0.4; charset=utf-8');
        response.end(deps.registry.text());
      },
      (error: unknown) => {
        deps.log.warn('a scrape could not be answered', { code: codeOf(error), error: messageOf(error) });
        refuse(503, 'the API server cannot be asked about this caller right now');
      },
    );
  };
  const options = { requestTimeout: patienceMs, headersTimeout: patienceMs, connectionsCheckingInterval: 1_000 };
  const server =
    access === 'open'
      ? http.createServer(options, answer)
      : https.createServer({ ...options, ...tls(host, deps.clock) }, answer);
  server.maxConnections = maxConnections;
  await new Promise<void>((resolve, reject) => server.once('error', reject).listen(port, host, resolve));
  const close = (): void => {
    server.close();
    server.closeAllConnections();
  };
  signal.addEventListener('abort', close, { once: true });
  if (signal.aborted) close();
  const listening = server.address() as AddressInfo;
  deps.log.info('metrics are served', { address: listening.address, port: listening.port, access });
  return { port: listening.port };
}

/** Made at each start and good for a year: scrapers do not verify it, they show a token. */
function tls(host: string | undefined, clock: Clock): https.ServerOptions {
  const { certificate: cert, privateKey: key } = issueServingCertificate([host ?? 'localhost'], clock.now());
  return { cert, key, minVersion: 'TLSv1.2', handshakeTimeout: patienceMs };
}

type Refusal = readonly [status: number, why: string];

/** Undefined: admitted. Fails when the cluster cannot be asked. */
function gateOf({
  api,
  clock,
}: MetricsServerDeps): (authorization: string | undefined) => Promise<Refusal | undefined> {
  const reviews = new AccessReviews(api, clock, remembered);
  let asking = 0;
  return async (authorization) => {
    const [, token] = /^bearer +(\S+)$/i.exec(authorization ?? '') ?? [];
    if (token === undefined) return [401, 'a bearer token of this cluster is needed'];
    if (asking >= maxReviews) return [429, 'too many callers at a time'];
    asking++;
    const until = AbortSignal.timeout(patienceMs);
    try {
      const caller = await reviews.holderOf(token, until);
      const allowed = await reviews.allows(
        caller,
        { nonResourceAttributes: { path: metricsPath, verb: 'get' } },
        until,
      );
      return allowed ? undefined : [403, `user ${JSON.stringify(caller.user)} may not get ${metricsPath}`];
    } catch (error) {
      if (codeOf(error) !== 'unauthenticated') throw error;
      return [401, messageOf(error)];
    } finally {
      asking--;
    }
  };
}
