/** Standard Webhooks: secrets `whsec_…`, and the HMAC-SHA256 of id, time and body under each of them. */
import { createHmac } from 'node:crypto';
import type { Ids } from '#shared/ports/ids.ts';

const secretPrefix = 'whsec_';
const secretBytes = 32;

export const newWebhookSecret = (ids: Pick<Ids, 'bytes'>): string =>
  `${secretPrefix}${Buffer.from(ids.bytes(secretBytes)).toString('base64')}`;

export interface Signed {
  readonly id: string;
  /** Milliseconds; the header has seconds. */
  readonly at: number;
  readonly body: string;
}

/** The three headers; one signature for each secret, the newest first. */
export function signatureHeaders(secrets: readonly string[], { id, at, body }: Signed): Record<string, string> {
  const timestamp = String(Math.floor(at / 1_000));
  const signatures = secrets.map((secret) => {
    const key = Buffer.from(secret.slice(secretPrefix.length), 'base64');
    return `v1,${createHmac('sha256', key).update(`${id}.${timestamp}.${body}`).digest('base64')}`;
  });
  return { 'webhook-id': id, 'webhook-timestamp': timestamp, 'webhook-signature': signatures.join(' ') };
}
