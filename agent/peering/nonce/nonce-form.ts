/**
 * What a nonce looks like, and its signature. The cluster key also signs tokens, announcements and key successions, and a provider that runs Liqo
 * wants the bare signature over the bare text: so no text is signed as a nonce that could be one of those. Pure.
 */
import { signWith } from '#agent/pki/cluster-keys.ts';
import { AppError } from '#shared/errors/app-error.ts';

/** As Liqo and liqoctl make it: the base64 text of 64 bytes. A token has dots, all other signed texts have line ends or control bytes. */
const nonceForm = /^[A-Za-z0-9+/]{86}==$/;

/** What is wrong with the bytes in `data.nonce`; undefined: they may be signed. */
export function nonceFault(nonce: Uint8Array): string | undefined {
  if (nonceForm.test(Buffer.from(nonce).toString('latin1'))) return undefined;
  return `data.nonce holds ${nonce.length} bytes that are no nonce; accepted is the base64 text of 64 bytes, as \`liqoctl create nonce\` prints it`;
}

/** The signature over the text of a nonce. Fails with `invalid_input` for anything else. */
export function signNonce(privateKeyPem: string, nonce: Uint8Array): Uint8Array {
  const fault = nonceFault(nonce);
  if (fault !== undefined) throw new AppError('invalid_input', fault, { detail: { field: 'data.nonce' } });
  return signWith(privateKeyPem, nonce);
}
