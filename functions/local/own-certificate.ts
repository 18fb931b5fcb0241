/** A serving certificate that the operator brings: read from files, checked before it is used, read again when the files change. */
import { createHash, createPrivateKey, X509Certificate } from 'node:crypto';
import { readFile, stat } from 'node:fs/promises';
import { isIP } from 'node:net';
import { AppError } from '#shared/errors/app-error.ts';

export interface CertificateFiles {
  /** PEM: the certificate, then those between it and the root. A root at the end is what agents and command lines pin. */
  readonly certFile: string;
  readonly keyFile: string;
}

export interface OwnCertificate {
  readonly certPem: string;
  readonly keyPem: string;
  /** Of the root that the file ends with. Absent: clients trust the certificate by the roots of their system. */
  readonly caPem?: string;
  readonly caHash?: string;
}

const refuse = (field: string, value: string, why: string, cause?: unknown): AppError =>
  new AppError('invalid_input', `${field} ${value} ${why}`, { cause, detail: { field, value } });

async function read(field: string, file: string): Promise<string> {
  try {
    return await readFile(file, 'utf8');
  } catch (cause) {
    throw refuse(field, file, `cannot be read: ${(cause as Error).message}`, cause);
  }
}

const covers = (certificate: X509Certificate, name: string): boolean =>
  (isIP(name) === 0 ? certificate.checkHost(name) : certificate.checkIP(name)) !== undefined;

/** `name`: by which clients reach this broker. Throws `invalid_input` naming the option, the file and what is wrong with it. */
export async function readCertificate(files: CertificateFiles, name: string, now: number): Promise<OwnCertificate> {
  const { certFile, keyFile } = files;
  const [certPem, keyPem] = [await read('tls-cert', certFile), await read('tls-key', keyFile)];
  const texts = certPem.match(/-----BEGIN CERTIFICATE-----[^-]+-----END CERTIFICATE-----/g) ?? [];
  const [serving, ...rest] = texts.map((text) => new X509Certificate(text));
  if (!serving) throw refuse('tls-cert', certFile, 'has no certificate in PEM');
  let matches: boolean;
  try {
    matches = serving.checkPrivateKey(createPrivateKey(keyPem));
  } catch (cause) {
    throw refuse('tls-key', keyFile, 'has no private key in PEM without a passphrase', cause);
  }
  if (!matches) throw refuse('tls-key', keyFile, `is not the key of the certificate in ${certFile}`);
  if (Date.parse(serving.validTo) <= now) throw refuse('tls-cert', certFile, `expired at ${serving.validTo}`);
  if (!covers(serving, name)) {
    throw refuse(
      'tls-cert',
      certFile,
      `is for ${serving.subjectAltName ?? 'no name'}, clients reach this broker as ${name}`,
    );
  }
  const last = rest.at(-1);
  const root = last?.ca && last.issuer === last.subject && last.verify(last.publicKey) ? last : undefined;
  return {
    certPem,
    keyPem,
    ...(root && { caPem: root.toString(), caHash: createHash('sha256').update(root.raw).digest('hex') }),
  };
}

/** Changes when one of the files does. */
export async function versionOfFiles({ certFile, keyFile }: CertificateFiles): Promise<string> {
  const stats = await Promise.all([certFile, keyFile].map((file) => stat(file)));
  return stats.map(({ mtimeMs, ino, size }) => `${ino}/${mtimeMs}/${size}`).join(' ');
}
