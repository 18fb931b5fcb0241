/** The key pair of a gateway, as its Secret holds it: base64 of 32 raw bytes each. */
import { generateKeyPairSync } from 'node:crypto';

export interface GatewayKeys {
  readonly privateKey: string;
  readonly publicKey: string;
}

const raw = 32;

/** The raw key is the end of both encodings (RFC 8410). */
export function createGatewayKeys(): GatewayKeys {
  const { privateKey, publicKey } = generateKeyPairSync('x25519');
  return {
    privateKey: privateKey.export({ type: 'pkcs8', format: 'der' }).subarray(-raw).toString('base64'),
    publicKey: publicKey.export({ type: 'spki', format: 'der' }).subarray(-raw).toString('base64'),
  };
}
