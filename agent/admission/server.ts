/**
 * HTTPS server of the webhooks. API servers show no client certificate unless their administrator configured one, so by default a caller
 * cannot be told from any other client in the cluster network: answers therefore contain nothing but the judgement of what was sent, and
 * requests are small, few at a time and short. `clientCa` closes that gap where API servers do have a certificate.
 */

import type { IncomingMessage } from 'node:http';
import https from 'node:https';
import type { AddressInfo, Socket } from 'node:net';
import type { ServingCertificate } from '#agent/pki/webhook-certificate.ts';
import { codeOf } from '#shared/errors/app-error.ts';
import { messageOf } from '#shared/errors/message-of.ts';
import type { Log } from '#shared/ports/log.ts';
import type { MayCall } from './callers.ts';
import { failurePolicyOf } from './configurations.ts';
import type { Hook } from './hook.ts';
import { allow, answer, deny, parseReview, type Verdict } from './review.ts';

export interface ServerOptions {
  readonly routes: ReadonlyMap<string, Hook>;
  readonly certificate: ServingCertificate;
  readonly log: Log;
  readonly host?: string;
  readonly port: number;
  /** PEM: only callers with a certificate of this CA are served. */
  readonly clientCa?: string;
  /** Asked for each new connection; those of others end before TLS begins. */
  readonly mayCall?: MayCall;
}

export interface AdmissionServer {
  readonly port: number;
  /** New connections get this certificate; those that are open stay. */
  use(certificate: ServingCertificate): void;
  close(): Promise<void>;
}

/** An object and its predecessor, of at most 1.5 MiB each as etcd takes them, in JSON. */
const maxBodyBytes = 8 * 1024 * 1024;
const maxInFlight = 500;
/** Below the 5 s that the API server waits, so that the reason gets through. */
const deadlineMs = 4_000;

type Reply = readonly [status: number, body: unknown];

export async function serveAdmission({
  routes,
  certificate,
  log,
  host,
  port,
  clientCa,
  mayCall,
}: ServerOptions): Promise<AdmissionServer> {
  let inFlight = 0;
  const context = ({ certificate: cert, privateKey: key }: ServingCertificate) => ({
    cert,
    key,
    minVersion: 'TLSv1.2' as const,
    ...(clientCa !== undefined && { ca: clientCa }),
  });
  const server = https.createServer(
    { ...context(certificate), ...(clientCa !== undefined && { requestCert: true, rejectUnauthorized: true }) },
    (request, response) => {
      const reply = ([status, body]: Reply): void => {
        const text = JSON.stringify(body);
        response.writeHead(status, {
          'content-type': 'application/json',
          'content-length': Buffer.byteLength(text),
          // The server does not read the rest of a body that is too long.
          ...(status === 413 && { connection: 'close' }),
        });
        response.end(text);
      };
      const [path = ''] = (request.url ?? '').split('?');
      const hook = routes.get(path);
      if (!hook || request.method !== 'POST')
        return reply([hook ? 405 : 404, { error: 'POST an AdmissionReview to a webhook path' }]);
      if (inFlight >= maxInFlight) return reply([429, { error: 'too many reviews at a time' }]);
      inFlight++;
      readBody(request)
        .then((body) =>
          body === undefined
            ? ([413, { error: `at most ${maxBodyBytes} bytes` }] as const)
            : review(path, hook, body, log),
        )
        .then(reply, (error: unknown) => {
          log.debug('review not answered', { path, error: String(error) });
          response.destroy();
        })
        .finally(() => inFlight--);
    },
  );
  server.requestTimeout = 10_000;
  server.headersTimeout = 5_000;
  server.keepAliveTimeout = 120_000;
  if (mayCall !== undefined) {
    server.prependListener('connection', (socket: Socket) => {
      if (mayCall(socket.remoteAddress)) return;
      log.info('webhook caller refused', { address: socket.remoteAddress });
      socket.destroy();
    });
  }
  server.on('tlsClientError', (error) => log.debug('webhook caller without TLS', { error: error.message }));
  await new Promise<void>((resolve, reject) => server.once('error', reject).listen(port, host, resolve));
  return {
    port: (server.address() as AddressInfo).port,
    use: (next) => server.setSecureContext(context(next)),
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
}

/** Undefined: too long; what is left of it is not kept. */
function readBody(request: IncomingMessage): Promise<string | undefined> {
  return new Promise((resolve, reject) => {
    const pieces: Buffer[] = [];
    let size = 0;
    request.on('data', (piece: Buffer) => {
      size += piece.length;
      if (size <= maxBodyBytes) pieces.push(piece);
      else {
        pieces.length = 0;
        resolve(undefined);
      }
    });
    request.on('error', reject);
    request.once('close', () => reject(new Error('the question broke off')));
    request.once('end', () => resolve(Buffer.concat(pieces).toString('utf8')));
  });
}

async function review(path: string, hook: Hook, body: string, log: Log): Promise<Reply> {
  let uid: string;
  let verdict: Verdict;
  const deadline = new AbortController();
  const timer = setTimeout(
    () => deadline.abort(new DOMException('the review took too long', 'TimeoutError')),
    deadlineMs,
  );
  try {
    const review = parseReview(body);
    uid = review.uid;
    verdict = await decided(path, () => hook(review, deadline.signal), log);
    if (!verdict.allowed) {
      log.info('refused', {
        path,
        namespace: review.namespace,
        name: review.name,
        user: review.user.name,
        code: verdict.code,
        why: verdict.message,
      });
    }
  } catch (error) {
    return [400, { error: messageOf(error) }];
  } finally {
    clearTimeout(timer);
  }
  return [200, answer(uid, verdict)];
}

/** When the hook fails to decide: requests that the API server would refuse without this webhook are refused with a reason. */
async function decided(path: string, hook: () => Promise<Verdict> | Verdict, log: Log): Promise<Verdict> {
  try {
    return await hook();
  } catch (error) {
    log.warn('review failed', {
      path,
      code: codeOf(error),
      error: messageOf(error),
    });
    if (failurePolicyOf(path) === 'Ignore') return allow;
    return deny('kube_unreachable', 'isthmus cannot look up what this depends on right now: try again in a moment');
  }
}
