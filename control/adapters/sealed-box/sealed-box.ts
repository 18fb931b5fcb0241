/** A secret box with a key in memory: AES-256-GCM, a fresh nonce for each text, the context authenticated. */
import { createCipheriv, createDecipheriv, randomBytes } from 'node:crypto';
import type { SecretBox } from '../../ports/secret-box.ts';

const cipher = 'aes-256-gcm';
const nonceBytes = 12;
const tagBytes = 16;
const version = 'v1';

export const boxKeyBytes = 32;

export function createSealedBox(key: Uint8Array): SecretBox {
  if (key.length !== boxKeyBytes)
    throw new Error(`the key of a secret box has ${boxKeyBytes} bytes, got ${key.length}`);
  return {
    async seal(secret, context) {
      const nonce = randomBytes(nonceBytes);
      const sealing = createCipheriv(cipher, key, nonce, { authTagLength: tagBytes }).setAAD(Buffer.from(context));
      const sealed = Buffer.concat([sealing.update(secret, 'utf8'), sealing.final()]);
      return `${version}.${Buffer.concat([nonce, sealed, sealing.getAuthTag()]).toString('base64url')}`;
    },
    async open(text, context) {
      const [is, data = ''] = text.split('.', 2);
      const bytes = Buffer.from(data, 'base64url');
      if (is !== version || bytes.length < nonceBytes + tagBytes) throw new Error('this is no sealed secret');
      const opening = createDecipheriv(cipher, key, bytes.subarray(0, nonceBytes), { authTagLength: tagBytes });
      opening.setAAD(Buffer.from(context)).setAuthTag(bytes.subarray(-tagBytes));
      const sealed = bytes.subarray(nonceBytes, -tagBytes);
      return Buffer.concat([opening.update(sealed), opening.final()]).toString('utf8');
    },
  };
}
