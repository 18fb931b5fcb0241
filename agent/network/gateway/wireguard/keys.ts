/** Whether a Secret holds a gateway's keys. Pure; says lengths and names, never content. */
import { keyBytes, publicKeyOf } from '#agent/pki/wireguard-keys.ts';
import type { Secret } from '#shared/domain/kube-object.ts';
import { gatewayKeys } from '#shared/domain/network-keys.ts';

/** What is wrong with it, in words; undefined when it is fine. */
export function faultOfKeys({ metadata, data }: Secret): string | undefined {
  const where = `Secret ${metadata.namespace}/${metadata.name}`;
  const bytesOf = (field: string): Buffer => Buffer.from(data?.[field] ?? '', 'base64');
  for (const field of [gatewayKeys.privateKey, gatewayKeys.publicKey]) {
    if (data?.[field] === undefined) return `${where} has no key ${field}; it has to hold ${keyBytes} raw bytes`;
    const { length } = bytesOf(field);
    if (length !== keyBytes)
      return `${where}: ${field} is ${length} bytes long, accepted: ${keyBytes} raw bytes (not the base64 text that \`wg genkey\` prints)`;
  }
  const derived = publicKeyOf(bytesOf(gatewayKeys.privateKey));
  return bytesOf(gatewayKeys.publicKey).equals(derived)
    ? undefined
    : `${where}: ${gatewayKeys.publicKey} does not belong to ${gatewayKeys.privateKey}; store the output of \`wg pubkey\` for that private key`;
}
