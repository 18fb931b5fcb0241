/**
 * HTTPS server of the webhooks. API servers show no client certificate unless their administrator configured one, so a caller is told from any
 * other client in the cluster network by the path that it asks: an unguessable one, which only the webhook configurations name. Any other caller gets a
 * 404 before its body is read, and its connection ends. Bodies share one budget of bytes. `clientCa` asks for a certificate as well.
 */
import { createHash, timingSafeEqual } from 'node:crypto';
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
  /** What precedes the paths of `routes`; without slashes. */
  readonly secretPath: string;
  readonly log: Log;
  readonly host?: string;
  readonly port: number;
  /** PEM: only callers with a certificate of this CA are served. */
  readonly clientCa?: string;
  /** Asked for each new connection; those of others end before TLS begins. */
  readonly mayCall?: MayCall;
  readonly onVerdict?: OnVerdict;
  /** Of all bodies that are read or judged at a time. */
  readonly budgetBytes?: number;
  /** For the TLS handshake, for headers once they have begun, and for a body. */
  readonly patienceMs?: number;
  /** Of a connection without a request. */
  readonly idleMs?: number;
  /** Connections on which nothing has been asked yet; the oldest one beyond ends. */
  readonly mostUnasked?: number;
}

/** `failed`: the hook could not decide. `path`: of the hook. */
export type OnVerdict = (path: string, verdict: 'allowed' | 'denied' | 'failed') => void;

export interface AdmissionServer {
  readonly port: number;
  /** New connections get this certificate, those that are open stay; only this secret path is heard from now on. */
  use(next: ServingCertificate & { readonly secretPath: string }): void;
  /** Besides the secret path in use, until the next call or `use`. */
  hearAlso(secretPath: string): void;
  close(): Promise<void>;
}

/** An object and its predecessor, of at most 1.5 MiB each as etcd takes them, in JSON. */
const maxBodyBytes = 8 * 1024 * 1024;
const maxInFlight = 500;
/** Text and objects of a body take several times its size; the container has 512 MiB. */
const defaultBudgetBytes = 32 * 1024 * 1024;
const defaultPatienceMs = 5_000;
/** An API server keeps a handful; each takes some 100 kB. */
const defaultMostUnasked = 256;
/** Longer than the 90 s for which Go's HTTP client keeps a connection without a request. */
const defaultIdleMs = 120_000;
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
  onVerdict = () => undefined,
  secretPath,
  budgetBytes = defaultBudgetBytes,
  patienceMs = defaultPatienceMs,
  idleMs = defaultIdleMs,
  mostUnasked = defaultMostUnasked,
}: ServerOptions): Promise<AdmissionServer> {
  let inFlight = 0;
  let bytesLeft = budgetBytes;
  let current = digestOf(secretPath);
  let next = current;
  const context = ({ certificate: cert, privateKey: key }: ServingCertificate) => ({
    cert,
    key,
    minVersion: 'TLSv1.2' as const,
    ...(clientCa !== undefined && { ca: clientCa }),
  });
  const unasked = new Unasked({ most: mostUnasked, patienceMs });
  const server = https.createServer(
    {
      ...context(certificate),
      handshakeTimeout: patienceMs,
      connectionsCheckingInterval: Math.min(1_000, patienceMs),
      ...(clientCa !== undefined && { requestCert: true, rejectUnauthorized: true }),
    },
    (request, response) => {
      unasked.remove(request.socket);
      const reply = ([status, body]: Reply): void => {
        const text = JSON.stringify(body);
        response.writeHead(status, {
          'content-type': 'application/json',
          'content-length': Buffer.byteLength(text),
          // The server does not read what is left of a body.
          ...(status !== 200 && { connection: 'close' }),
        });
        response.end(text);
      };
      const [, secret = '', path = ''] = /^\/([^/?]*)(\/[^?]*)/.exec(request.url ?? '') ?? [];
      const digest = digestOf(secret);
      const hook = [current, next].some((one) => timingSafeEqual(one, digest)) ? routes.get(path) : undefined;
      if (!hook) return reply([404, { error: 'nothing is here' }]);
      if (request.method !== 'POST') return reply([405, { error: 'POST an AdmissionReview to a webhook path' }]);
      const size = Number(request.headers['content-length'] ?? Number.NaN);
      if (Number.isNaN(size)) return reply([411, { error: 'Content-Length is missing' }]);
      if (size > maxBodyBytes) return reply([413, { error: `at most ${maxBodyBytes} bytes` }]);
      if (inFlight >= maxInFlight) return reply([429, { error: 'too many reviews at a time' }]);
      if (size > bytesLeft) return reply([429, { error: 'too many bytes of reviews at a time' }]);
      inFlight++;
      bytesLeft -= size;
      readBody(request, patienceMs)
        .then((body) => review(path, hook, body, { log, onVerdict }))
        .then(reply, (error: unknown) => {
          log.debug('review not answered', { path, error: String(error) });
          response.destroy();
        })
        .finally(() => {
          inFlight--;
          bytesLeft += size;
        });
    },
  );
  server.requestTimeout = idleMs;
  server.headersTimeout = idleMs;
  server.keepAliveTimeout = idleMs;
  server.on('secureConnection', (socket: Socket) => unasked.add(socket));
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
    use(following) {
      current = next = digestOf(following.secretPath);
      server.setSecureContext(context(following));
    },
    hearAlso(other) {
      next = digestOf(other);
    },
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
}

/** Of one length, so that comparing takes the same time for every guess. */
const digestOf = (secret: string): Buffer => createHash('sha256').update(secret).digest();

/**
 * Connections on which nothing has been asked yet. Go's HTTP client keeps spare ones for 90 s, and a review that is sent while the server ends one fails: they
 * stay. One ends that has sent the beginning of its first request, and not all of its headers `patienceMs` later; so does the oldest one beyond `most`, because
 * any client of the cluster network can open some.
 */
class Unasked {
  readonly #timers = new Map<Socket, NodeJS.Timeout>();
  readonly #most: number;
  readonly #patienceMs: number;

  constructor({ most, patienceMs }: { readonly most: number; readonly patienceMs: number }) {
    this.#most = most;
    this.#patienceMs = patienceMs;
  }

  add(socket: Socket): void {
    const silent = socket.bytesRead;
    let hasBegun = false;
    const look = (): void => {
      if (hasBegun) socket.destroy();
      hasBegun = socket.bytesRead > silent;
    };
    this.#timers.set(socket, setInterval(look, this.#patienceMs));
    socket.once('close', () => this.remove(socket));
    const [oldest] = this.#timers.keys();
    if (this.#timers.size > this.#most) oldest?.destroy();
  }

  /** It has asked, or is closed. */
  remove(socket: Socket): void {
    clearInterval(this.#timers.get(socket));
    this.#timers.delete(socket);
  }
}

/** Node ends the body at its Content-Length; the connection ends when that takes longer than `patienceMs`. */
function readBody(request: IncomingMessage, patienceMs: number): Promise<string> {
  const late = setTimeout(() => request.destroy(), patienceMs);
  return new Promise<string>((resolve, reject) => {
    const pieces: Buffer[] = [];
    request.on('data', (piece: Buffer) => pieces.push(piece));
    request.on('error', reject);
    request.once('close', () => reject(new Error('the question broke off')));
    request.once('end', () => resolve(Buffer.concat(pieces).toString('utf8')));
  }).finally(() => clearTimeout(late));
}

interface Told {
  readonly log: Log;
  readonly onVerdict: OnVerdict;
}

async function review(path: string, hook: Hook, body: string, { log, onVerdict }: Told): Promise<Reply> {
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
    verdict = await decided(path, () => hook(review, deadline.signal), { log, onVerdict });
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
async function decided(
  path: string,
  hook: () => Promise<Verdict> | Verdict,
  { log, onVerdict }: Told,
): Promise<Verdict> {
  try {
    const verdict = await hook();
    onVerdict(path, verdict.allowed ? 'allowed' : 'denied');
    return verdict;
  } catch (error) {
    onVerdict(path, 'failed');
    log.warn('review failed', {
      path,
      code: codeOf(error),
      error: messageOf(error),
    });
    if (failurePolicyOf(path) === 'Ignore') return allow;
    if (error instanceof TypeError)
      return deny(
        'malformed_request',
        'isthmus cannot judge this object: a field that it reads is missing or of another type; compare it with `kubectl explain`',
      );
    return deny('kube_unreachable', 'isthmus cannot look up what this depends on right now: try again in a moment');
  }
}
