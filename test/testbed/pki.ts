/** A certificate authority made on the spot, and certificates from it: everything a Kubernetes control plane and its nodes need. */
import 'reflect-metadata';
import { createPublicKey, webcrypto } from 'node:crypto';
import * as x509 from '@peculiar/x509';

export interface KeyPair {
  readonly cert: string;
  readonly key: string;
}

export interface Subject {
  readonly commonName: string;
  readonly organization?: string;
  readonly ips?: readonly string[];
  readonly dnsNames?: readonly string[];
}

const algorithm = { name: 'ECDSA', namedCurve: 'P-256', hash: 'SHA-256' } as const;
const dayMs = 24 * 60 * 60 * 1000;

const newKeys = (): Promise<webcrypto.CryptoKeyPair> =>
  webcrypto.subtle.generateKey(algorithm, true, ['sign', 'verify']);

async function keyPem(key: webcrypto.CryptoKey): Promise<string> {
  return x509.PemConverter.encode(await webcrypto.subtle.exportKey('pkcs8', key), 'PRIVATE KEY');
}

const validity = (): { notBefore: Date; notAfter: Date } => {
  const now = Date.now();
  return { notBefore: new Date(now - dayMs / 24), notAfter: new Date(now + 365 * dayMs) };
};

export class CertificateAuthority {
  readonly cert: string;
  readonly key: string;
  readonly #certificate: x509.X509Certificate;
  readonly #signingKey: webcrypto.CryptoKey;

  private constructor(certificate: x509.X509Certificate, signingKey: webcrypto.CryptoKey, key: string) {
    this.#certificate = certificate;
    this.#signingKey = signingKey;
    this.cert = certificate.toString('pem');
    this.key = key;
  }

  static async create(commonName: string): Promise<CertificateAuthority> {
    const keys = await newKeys();
    const usages = x509.KeyUsageFlags.keyCertSign | x509.KeyUsageFlags.cRLSign | x509.KeyUsageFlags.digitalSignature;
    const certificate = await x509.X509CertificateGenerator.createSelfSigned(
      {
        name: [{ CN: [commonName] }],
        keys,
        signingAlgorithm: algorithm,
        ...validity(),
        extensions: [
          new x509.BasicConstraintsExtension(true, undefined, true),
          new x509.KeyUsagesExtension(usages, true),
          await x509.SubjectKeyIdentifierExtension.create(keys.publicKey, false, webcrypto),
        ],
      },
      webcrypto,
    );
    return new CertificateAuthority(certificate, keys.privateKey, await keyPem(keys.privateKey));
  }

  /** A certificate that serves for clients and servers alike. */
  async issue(subject: Subject): Promise<KeyPair> {
    const keys = await newKeys();
    const organization = subject.organization === undefined ? [] : [{ O: [subject.organization] }];
    const names: x509.JsonGeneralNames = [
      ...(subject.ips ?? []).map((value) => ({ type: 'ip' as const, value })),
      ...(subject.dnsNames ?? []).map((value) => ({ type: 'dns' as const, value })),
    ];
    const certificate = await x509.X509CertificateGenerator.create(
      {
        subject: [...organization, { CN: [subject.commonName] }],
        issuer: this.#certificate.subject,
        publicKey: keys.publicKey,
        signingKey: this.#signingKey,
        signingAlgorithm: algorithm,
        ...validity(),
        extensions: [
          new x509.KeyUsagesExtension(x509.KeyUsageFlags.digitalSignature, true),
          new x509.ExtendedKeyUsageExtension([x509.ExtendedKeyUsage.clientAuth, x509.ExtendedKeyUsage.serverAuth]),
          await x509.AuthorityKeyIdentifierExtension.create(this.#certificate, false, webcrypto),
          ...(names.length > 0 ? [new x509.SubjectAlternativeNameExtension(names)] : []),
        ],
      },
      webcrypto,
    );
    return { cert: certificate.toString('pem'), key: await keyPem(keys.privateKey) };
  }
}

/** The key pair that signs service account tokens: a private key and its public half, no certificate. */
export async function newServiceAccountKeys(): Promise<{ readonly privateKey: string; readonly publicKey: string }> {
  const privateKey = await keyPem((await newKeys()).privateKey);
  return { privateKey, publicKey: createPublicKey(privateKey).export({ type: 'spki', format: 'pem' }).toString() };
}
