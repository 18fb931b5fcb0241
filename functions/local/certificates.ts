/** The broker's own certificate authority and serving certificate, made at the first start and kept in the data directory. */
import 'reflect-metadata';
import { createHash, createPrivateKey, randomBytes, webcrypto, X509Certificate } from 'node:crypto';
import { isIP } from 'node:net';
import path from 'node:path';
import * as x509 from '@peculiar/x509';
import { makePrivateDirectory, readIfPresent, writePrivateFile } from './private-files.ts';

const dayMs = 86_400_000;
const caLifeMs = 3_650 * dayMs;
const servingLifeMs = 397 * dayMs;
const renewBeforeMs = 30 * dayMs;
const algorithm = { name: 'ECDSA', namedCurve: 'P-256', hash: 'SHA-256' } as const;

export interface ServingCertificates {
  readonly caPem: string;
  /** Hex SHA-256 of the CA certificate's DER: what join tokens and `isthmus login --ca-hash` carry. */
  readonly caHash: string;
  readonly certPem: string;
  readonly keyPem: string;
  readonly renewAt: number;
}

const hashOfCertificate = (pem: string): string =>
  createHash('sha256').update(new X509Certificate(pem).raw).digest('hex');

const subjectAltNames = (names: readonly string[]): x509.JsonGeneralNames =>
  names.map((name) => ({ type: isIP(name) === 0 ? 'dns' : 'ip', value: name }));

const exportKey = async (key: webcrypto.CryptoKey): Promise<string> =>
  createPrivateKey({
    key: Buffer.from(await webcrypto.subtle.exportKey('pkcs8', key)),
    format: 'der',
    type: 'pkcs8',
  }).export({ format: 'pem', type: 'pkcs8' }) as string;

const importKey = (pem: string): Promise<webcrypto.CryptoKey> =>
  webcrypto.subtle.importKey('pkcs8', createPrivateKey(pem).export({ format: 'der', type: 'pkcs8' }), algorithm, true, [
    'sign',
  ]) as Promise<webcrypto.CryptoKey>;

const newKeys = (): Promise<webcrypto.CryptoKeyPair> =>
  webcrypto.subtle.generateKey(algorithm, true, ['sign', 'verify']) as Promise<webcrypto.CryptoKeyPair>;

async function makeAuthority(now: number): Promise<{ certPem: string; keyPem: string }> {
  const keys = await newKeys();
  const certificate = await x509.X509CertificateGenerator.createSelfSigned({
    serialNumber: randomBytes(16).toString('hex'),
    name: 'CN=Isthmus broker CA',
    notBefore: new Date(now - dayMs),
    notAfter: new Date(now + caLifeMs),
    signingAlgorithm: algorithm,
    keys,
    extensions: [
      new x509.BasicConstraintsExtension(true, 0, true),
      new x509.KeyUsagesExtension(x509.KeyUsageFlags.keyCertSign | x509.KeyUsageFlags.cRLSign, true),
      await x509.SubjectKeyIdentifierExtension.create(keys.publicKey),
    ],
  });
  return { certPem: certificate.toString('pem'), keyPem: await exportKey(keys.privateKey) };
}

async function makeServing(
  authority: { certPem: string; keyPem: string },
  names: readonly string[],
  now: number,
): Promise<{ certPem: string; keyPem: string }> {
  const keys = await newKeys();
  const issuer = new x509.X509Certificate(authority.certPem);
  const certificate = await x509.X509CertificateGenerator.create({
    serialNumber: randomBytes(16).toString('hex'),
    subject: 'CN=Isthmus broker',
    issuer: issuer.subject,
    notBefore: new Date(now - dayMs),
    notAfter: new Date(now + servingLifeMs),
    signingAlgorithm: algorithm,
    publicKey: keys.publicKey,
    signingKey: await importKey(authority.keyPem),
    extensions: [
      new x509.BasicConstraintsExtension(false, undefined, true),
      new x509.KeyUsagesExtension(x509.KeyUsageFlags.digitalSignature, true),
      new x509.ExtendedKeyUsageExtension([x509.ExtendedKeyUsage.serverAuth]),
      new x509.SubjectAlternativeNameExtension(subjectAltNames(names)),
      await x509.AuthorityKeyIdentifierExtension.create(issuer.publicKey),
    ],
  });
  return { certPem: certificate.toString('pem'), keyPem: await exportKey(keys.privateKey) };
}

const coversAll = (certificate: X509Certificate, names: readonly string[]): boolean =>
  names.every((name) => (isIP(name) === 0 ? certificate.checkHost(name) : certificate.checkIP(name)) !== undefined);

/**
 * Reads CA and serving certificate from `dir`, making what is missing. The CA stays for good, because its hash is pinned by agents and
 * command lines; the serving certificate is replaced when a name is new or 30 days are left.
 */
export async function servingCertificates(
  dir: string,
  names: readonly string[],
  now: number,
): Promise<ServingCertificates> {
  await makePrivateDirectory(dir);
  const file = (name: string) => path.join(dir, name);
  let caKeyPem = await readIfPresent(file('ca-key.pem'));
  let caPem = await readIfPresent(file('ca.pem'));
  if (caKeyPem === undefined || caPem === undefined) {
    const made = await makeAuthority(now);
    [caKeyPem, caPem] = [made.keyPem, made.certPem];
    // The certificate goes last: a crash in between leaves a key without certificate, and the pair is made again.
    await writePrivateFile(file('ca-key.pem'), caKeyPem);
    await writePrivateFile(file('ca.pem'), caPem);
  }

  const bundle = await readIfPresent(file('serving.pem'));
  const kept = bundle === undefined ? undefined : splitBundle(bundle);
  const usable =
    kept !== undefined &&
    coversAll(kept.certificate, names) &&
    kept.certificate.verify(new X509Certificate(caPem).publicKey) &&
    Date.parse(kept.certificate.validTo) - now > renewBeforeMs;
  const serving = usable ? kept : await makeServing({ certPem: caPem, keyPem: caKeyPem }, names, now);
  // One file, so that certificate and key can never be of two generations.
  if (!usable) await writePrivateFile(file('serving.pem'), `${serving.certPem.trim()}\n${serving.keyPem.trim()}\n`);
  return {
    caPem: `${caPem.trim()}\n`,
    caHash: hashOfCertificate(caPem),
    certPem: `${serving.certPem.trim()}\n${caPem.trim()}\n`,
    keyPem: `${serving.keyPem.trim()}\n`,
    renewAt: Date.parse(new X509Certificate(serving.certPem).validTo) - renewBeforeMs,
  };
}

function splitBundle(bundle: string): { certPem: string; keyPem: string; certificate: X509Certificate } | undefined {
  const certPem = /-----BEGIN CERTIFICATE-----[^-]+-----END CERTIFICATE-----/.exec(bundle)?.[0];
  const keyPem = /-----BEGIN PRIVATE KEY-----[^-]+-----END PRIVATE KEY-----/.exec(bundle)?.[0];
  if (certPem === undefined || keyPem === undefined) return undefined;
  return { certPem, keyPem, certificate: new X509Certificate(certPem) };
}
