/** PEM blocks: exactly one per text, as every field of Liqo's API that holds PEM expects. */
import { AppError } from '#shared/errors/app-error.ts';

const block = /^\s*-----BEGIN ([A-Z0-9 ]+)-----\r?\n([A-Za-z0-9+/=\r\n]+?)\r?\n-----END \1-----\s*$/;

/** The bytes inside the one block labelled `label`. */
export function readPem(text: string, label: string): Uint8Array {
  const match = block.exec(text);
  if (match === null || match[1] !== label) {
    const found = /-----BEGIN ([A-Z0-9 ]+)-----/.exec(text)?.[1];
    throw new AppError(
      'invalid_input',
      `expected one PEM block "${label}", found ${found === undefined ? 'no PEM' : `"${found}"${match ? '' : ' with something else beside it'}`}`,
    );
  }
  return Buffer.from(match[2] ?? '', 'base64');
}

export function writePem(label: string, bytes: Uint8Array): string {
  const lines =
    Buffer.from(bytes)
      .toString('base64')
      .match(/.{1,64}/g) ?? [];
  return `-----BEGIN ${label}-----\n${lines.join('\n')}\n-----END ${label}-----\n`;
}

/** The text inside a `bytes` field of the Kubernetes API. */
export const fromBase64 = (value: string): string => Buffer.from(value, 'base64').toString('utf8');
export const toBase64 = (value: string | Uint8Array): string => Buffer.from(value).toString('base64');
