/**
 * Fetches JSON documents over HTTPS from public addresses only. The address is checked when the name is resolved for the very connection, so
 * a name that changes its address in between gains nothing.
 */

import { lookup as systemLookup } from 'node:dns';
import { request as httpRequest, type IncomingMessage } from 'node:http';
import { request as httpsRequest } from 'node:https';
import type { LookupFunction } from 'node:net';
import { abortsWith } from '#shared/async/abort-scope.ts';
import { AppError } from '#shared/errors/app-error.ts';
import type { DocumentSource } from '../../ports/document-source.ts';
import { isPublicAddress } from './public-address.ts';
import { guardedLookup, hostOf, isLocalName, refusedAddress, refusedScheme } from './public-only.ts';

export interface HttpsJsonOptions {
  /** For providers inside the operator's own network. Plain HTTP stays limited to loopback, and needs this too. */
  readonly allowPrivateAddresses?: boolean;
  /** Trusted instead of the system's authorities. */
  readonly ca?: string;
  /** For tests. */
  readonly lookup?: LookupFunction;
}

const timeoutMs = 5_000;
const maxBytes = 256 * 1024;

export function createHttpsJson({
  allowPrivateAddresses = false,
  ca,
  lookup = systemLookup as LookupFunction,
}: HttpsJsonOptions = {}): DocumentSource {
  const allowed = (address: string): boolean => allowPrivateAddresses || isPublicAddress(address);
  const rule = { allowPrivateAddresses, allowed };

  function refusal(text: string): string | undefined {
    let url: URL;
    try {
      url = new URL(text);
    } catch {
      return 'it is no URL; accepted is https://HOST[:PORT][/PATH]';
    }
    const host = hostOf(url);
    const local = isLocalName(host);
    const scheme = refusedScheme(url, local, rule);
    if (scheme !== undefined) return scheme;
    if (url.username !== '' || url.password !== '' || url.hash !== '' || url.search !== '') {
      return 'it must hold no user, password, query or fragment';
    }
    return refusedAddress(url, local, rule);
  }

  const guarded = guardedLookup(lookup, allowed);

  return {
    refusal,
    json(text, signal) {
      const unreachable = (why: string, cause?: unknown): AppError =>
        new AppError('issuer_unreachable', `${text} cannot be fetched: ${why}`, { cause, detail: { url: text } });
      const refused = refusal(text);
      if (refused !== undefined) return Promise.reject(unreachable(refused));
      const url = new URL(text);
      return new Promise((resolve, reject) => {
        const fail = (why: string, cause?: unknown): void => reject(unreachable(why, cause));
        const deadline = AbortSignal.timeout(timeoutMs);
        const options = {
          method: 'GET',
          agent: false as const,
          headers: { accept: 'application/json', 'user-agent': 'isthmus-broker' },
          lookup: guarded,
          signal: signal ? abortsWith(signal, deadline) : deadline,
          ...(ca === undefined ? {} : { ca }),
        };
        const onAnswer = (response: IncomingMessage): void => {
          if (response.statusCode !== 200) {
            response.destroy();
            fail(`it answered with status ${response.statusCode}`);
            return;
          }
          const chunks: Buffer[] = [];
          let length = 0;
          response.on('error', (cause) => fail(cause.message, cause));
          response.on('data', (chunk: Buffer) => {
            length += chunk.length;
            if (length > maxBytes) response.destroy(new Error(`it is larger than ${maxBytes} bytes`));
            else chunks.push(chunk);
          });
          response.on('end', () => {
            try {
              resolve(JSON.parse(Buffer.concat(chunks).toString('utf8')));
            } catch (cause) {
              fail('it is not JSON', cause);
            }
          });
        };
        const sent = (url.protocol === 'https:' ? httpsRequest : httpRequest)(url, options, onAnswer);
        sent.on('error', (cause) => fail(deadline.aborted ? 'no answer in time' : cause.message, cause));
        sent.end();
      });
    },
  };
}
