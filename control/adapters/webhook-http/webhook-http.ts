/**
 * Posts to webhooks over HTTPS, to public addresses only. A name is resolved once per connection, every address it has is checked, and the
 * connection goes to a checked one, so a name that changes its address in between gains nothing.
 */
import { lookup as systemLookup } from 'node:dns';
import { request as httpRequest, type IncomingMessage } from 'node:http';
import { request as httpsRequest } from 'node:https';
import { isIP, type LookupFunction } from 'node:net';
import type { PostOutcome, WebhookSender } from '../../ports/webhook-sender.ts';
import { sendTimeoutMs } from '../../webhooks/schedule.ts';
import { isLoopback, isPublicAddress } from '../https-json/public-address.ts';

export interface WebhookHttpOptions {
  /** For receivers inside the operator's own network. Plain HTTP stays limited to loopback, and needs this too. */
  readonly allowPrivateAddresses?: boolean;
  /** Trusted instead of the system's authorities. */
  readonly ca?: string;
  /** For tests. */
  readonly lookup?: LookupFunction;
  readonly timeoutMs?: number;
}

const keptBytes = 1_024;
const maxUrlLength = 2_000;
const notPublic = 'it resolves to an address that is not public';

const hostOf = (url: URL): string => url.hostname.replace(/^\[|\]$/g, '');

export function createWebhookHttp({
  allowPrivateAddresses = false,
  ca,
  lookup = systemLookup as LookupFunction,
  timeoutMs = sendTimeoutMs,
}: WebhookHttpOptions = {}): WebhookSender {
  const allowed = (address: string): boolean => allowPrivateAddresses || isPublicAddress(address);

  function refusal(text: string): string | undefined {
    if (text.length > maxUrlLength) return `it is longer than ${maxUrlLength} characters`;
    const url = URL.canParse(text) ? new URL(text) : undefined;
    if (!url) return 'it is no URL; accepted is https://HOST[:PORT][/PATH][?QUERY]';
    const host = hostOf(url);
    const local = isLoopback(host) || host === 'localhost' || host.endsWith('.localhost');
    if (url.protocol !== 'https:' && !(url.protocol === 'http:' && allowPrivateAddresses && local)) {
      return 'accepted is https only';
    }
    if (url.username !== '' || url.password !== '' || url.hash !== '') {
      return 'it must hold no user, password or fragment';
    }
    if ((isIP(host) !== 0 && !allowed(host)) || (local && !allowPrivateAddresses)) {
      return 'accepted are public addresses only';
    }
    return undefined;
  }

  const guarded: LookupFunction = (hostname, options, callback) => {
    lookup(hostname, options, (error, address, family) => {
      if (error) return callback(error, address, family);
      const all = Array.isArray(address) ? address.map((entry) => entry.address) : [address];
      if (all.length > 0 && all.every(allowed)) return callback(null, address, family);
      callback(new Error(notPublic), address, family);
    });
  };

  return {
    refusal,
    post({ url: text, headers, body }, signal) {
      const refused = refusal(text);
      if (refused !== undefined) return Promise.resolve({ error: refused });
      const url = new URL(text);
      return new Promise((resolve, reject) => {
        const deadline = AbortSignal.timeout(timeoutMs);
        const fail = (cause: Error): void => {
          if (signal?.aborted) reject(signal.reason);
          else resolve({ error: deadline.aborted ? `no answer within ${timeoutMs / 1_000} s` : cause.message });
        };
        const sent = (url.protocol === 'https:' ? httpsRequest : httpRequest)(url, {
          method: 'POST',
          agent: false as const,
          headers: { ...headers, 'content-length': Buffer.byteLength(body) },
          lookup: guarded,
          signal: signal ? AbortSignal.any([signal, deadline]) : deadline,
          ...(ca === undefined ? {} : { ca }),
        });
        // Whatever way led there: nothing is written to an address that was not checked.
        sent.on('socket', (socket) =>
          socket.once('connect', () => {
            if (!allowed(socket.remoteAddress ?? '')) sent.destroy(new Error(notPublic));
          }),
        );
        sent.on('error', fail);
        sent.on('response', (response) => beginningOf(response).then(resolve, fail));
        sent.end(body);
      });
    },
  };
}

/** The rest of a long answer is not read: the connection ends instead. */
function beginningOf(response: IncomingMessage): Promise<PostOutcome> {
  return new Promise((resolve, reject) => {
    const chunks: Buffer[] = [];
    let length = 0;
    const done = (): void => {
      const text = Buffer.concat(chunks).subarray(0, keptBytes).toString('utf8');
      const seconds = Number(response.headers['retry-after'] ?? Number.NaN);
      resolve({
        status: response.statusCode ?? 0,
        text: text.replaceAll(/[\p{Cc}\p{Cs}\ufffd]/gu, ' '),
        ...(Number.isFinite(seconds) && seconds > 0 && { retryAfterMs: seconds * 1_000 }),
      });
      response.destroy();
    };
    response.on('error', reject);
    response.on('data', (chunk: Buffer) => {
      chunks.push(chunk);
      length += chunk.length;
      if (length >= keptBytes) done();
    });
    response.on('end', done);
  });
}
