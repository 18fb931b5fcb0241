/** Text under AES-256-GCM with a fresh nonce, its context authenticated: moved to another record, it does not open. */
import { createCipheriv, createDecipheriv, randomBytes } from 'node:crypto';

const cipher = 'aes-256-gcm';
const nonceBytes = 12;
const tagBytes = 16;
const version = 'v1';

export const sealingKeyBytes = 32;

export function sealText(key: Uint8Array, text: string, context: string): string {
  const nonce = randomBytes(nonceBytes);
  const sealing = createCipheriv(cipher, key, nonce, { authTagLength: tagBytes }).setAAD(Buffer.from(context));
  const sealed = Buffer.concat([sealing.update(text, 'utf8'), sealing.final()]);
  return `${version}.${Buffer.concat([nonce, sealed, sealing.getAuthTag()]).toString('base64url')}`;
}

/** Throws when it was sealed with another key or for another context, or was changed. */
export function openText(key: Uint8Array, text: string, context: string): string {
  const [is, data = ''] = text.split('.', 2);
  const bytes = Buffer.from(data, 'base64url');
  if (is !== version || bytes.length < nonceBytes + tagBytes) throw new Error('this is no sealed secret');
  const opening = createDecipheriv(cipher, key, bytes.subarray(0, nonceBytes), { authTagLength: tagBytes });
  opening.setAAD(Buffer.from(context)).setAuthTag(bytes.subarray(-tagBytes));
  const sealed = bytes.subarray(nonceBytes, -tagBytes);
  return Buffer.concat([opening.update(sealed), opening.final()]).toString('utf8');
}
