/**
 * Posts to webhooks over HTTPS, to public addresses only. A name is resolved once per connection, every address it has is checked, and the
 * connection goes to a checked one, so a name that changes its address in between gains nothing.
 */

import { lookup as systemLookup } from 'node:dns';
import { request as httpRequest, type IncomingMessage } from 'node:http';
import { request as httpsRequest } from 'node:https';
import type { LookupFunction } from 'node:net';
import { abortsWith } from '#shared/async/abort-scope.ts';
import type { SendOutcome, WebhookSender } from '../../ports/webhook-sender.ts';
import { sendTimeoutMs } from '../../webhooks/schedule.ts';
import { isPublicAddress } from '../https-json/public-address.ts';
import {
  guardedLookup,
  hostOf,
  isLocalName,
  notPublic,
  refusedAddress,
  refusedScheme,
} from '../https-json/public-only.ts';

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

export function createWebhookHttp({
  allowPrivateAddresses = false,
  ca,
  lookup = systemLookup as LookupFunction,
  timeoutMs = sendTimeoutMs,
}: WebhookHttpOptions = {}): WebhookSender {
  const allowed = (address: string): boolean => allowPrivateAddresses || isPublicAddress(address);
  const rule = { allowPrivateAddresses, allowed };

  function refusal(text: string): string | undefined {
    if (text.length > maxUrlLength) return `it is longer than ${maxUrlLength} characters`;
    const url = URL.canParse(text) ? new URL(text) : undefined;
    if (!url) return 'it is no URL; accepted is https://HOST[:PORT][/PATH][?QUERY]';
    const host = hostOf(url);
    const local = isLocalName(host) || host.endsWith('.localhost');
    const scheme = refusedScheme(url, local, rule);
    if (scheme !== undefined) return scheme;
    if (url.username !== '' || url.password !== '' || url.hash !== '') {
      return 'it must hold no user, password or fragment';
    }
    return refusedAddress(url, local, rule);
  }

  const guarded = guardedLookup(lookup, allowed);

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
          signal: signal ? abortsWith(signal, deadline) : deadline,
          ...(ca === undefined ? {} : { ca }),
        });
        // Checked again on the open connection: nothing is written to an unchecked address, by redirect or DNS rebinding.
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
function beginningOf(response: IncomingMessage): Promise<SendOutcome> {
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
