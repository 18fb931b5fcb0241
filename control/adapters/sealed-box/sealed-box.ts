/** A secret box with a key in memory. */
import { openText, sealingKeyBytes, sealText } from '../../access/sealed-text.ts';
import type { SecretBox } from '../../ports/secret-box.ts';

export const boxKeyBytes = sealingKeyBytes;

export function createSealedBox(key: Uint8Array): SecretBox {
  if (key.length !== boxKeyBytes)
    throw new Error(`the key of a secret box has ${boxKeyBytes} bytes, got ${key.length}`);
  return {
    seal: async (secret, context) => sealText(key, secret, context),
    open: async (text, context) => openText(key, text, context),
  };
}
