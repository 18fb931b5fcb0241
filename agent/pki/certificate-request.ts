/**
 * PKCS#10 certificate requests, built and read without a library: the one that would do costs 24 MB of memory for the life of the agent.
 * The tests hold both directions against @peculiar/x509.
 */
import { createPublicKey, type KeyObject } from 'node:crypto';
import { AppError } from '#shared/errors/app-error.ts';
import { publicDerOf, publicKeyDer, signWith, verifyWith } from './cluster-keys.ts';
import { type DerNode, encode, expectTag, oid, readAll, readOne, tag } from './der.ts';
import { readPem, writePem } from './pem.ts';

/** The user (CN) and the group (O) that Kubernetes reads out of a client certificate. */
export interface Subject {
  readonly commonName: string;
  readonly organization: string;
}

const pemLabel = 'CERTIFICATE REQUEST';
const oids = { commonName: '2.5.4.3', organization: '2.5.4.10', ed25519: '1.3.101.112' } as const;
const hexOf = (bytes: Uint8Array): string => Buffer.from(bytes).toString('hex');
const oidHex = (dotted: string): string => hexOf(oid(dotted));
interface Algorithm {
  /** Of the keys that sign by it. */
  readonly keys: 'ed25519' | 'rsa' | 'ec';
  /** Null: the algorithm hashes by itself. */
  readonly digest: string | null;
}
const algorithms: Readonly<Record<string, Algorithm>> = {
  [oidHex(oids.ed25519)]: { keys: 'ed25519', digest: null },
  [oidHex('1.2.840.113549.1.1.11')]: { keys: 'rsa', digest: 'sha256' },
  [oidHex('1.2.840.113549.1.1.12')]: { keys: 'rsa', digest: 'sha384' },
  [oidHex('1.2.840.113549.1.1.13')]: { keys: 'rsa', digest: 'sha512' },
  [oidHex('1.2.840.10045.4.3.2')]: { keys: 'ec', digest: 'sha256' },
  [oidHex('1.2.840.10045.4.3.3')]: { keys: 'ec', digest: 'sha384' },
  [oidHex('1.2.840.10045.4.3.4')]: { keys: 'ec', digest: 'sha512' },
};

/** The INTEGER 0: PKCS#10 calls its only version so. */
const version0 = '020100';

const rdn = (type: string, value: string): Uint8Array =>
  encode(tag.set, encode(tag.sequence, oid(type), encode(tag.utf8String, Buffer.from(value, 'utf8'))));

/** Deterministic: the same subject and Ed25519 key always give the same text. */
export function buildCertificateRequest(subject: Subject, privateKeyPem: string): string {
  const info = encode(
    tag.sequence,
    encode(tag.integer, Uint8Array.of(0)),
    encode(tag.sequence, rdn(oids.organization, subject.organization), rdn(oids.commonName, subject.commonName)),
    publicDerOf(privateKeyPem),
    encode(tag.context0),
  );
  const signature = signWith(privateKeyPem, info);
  const request = encode(
    tag.sequence,
    info,
    encode(tag.sequence, oid(oids.ed25519)),
    encode(tag.bitString, Uint8Array.of(0), signature),
  );
  return writePem(pemLabel, request);
}

/** Whether a request was made for the key `privateKeyPem`; for our own requests only, it verifies nothing. */
export const carriesKeyOf = (requestPem: string, privateKeyPem: string): boolean => {
  try {
    return Buffer.from(readPem(requestPem, pemLabel)).includes(Buffer.from(publicDerOf(privateKeyPem)));
  } catch {
    return false;
  }
};

const refused = (why: string): AppError => new AppError('invalid_input', `the certificate request ${why}`);

function readSubject(name: DerNode): Subject {
  const found = new Map<string, string>();
  for (const set of readAll(name.content)) {
    const attributes = readAll(expectTag(set, tag.set).content);
    const pair = readAll(expectTag(attributes[0], tag.sequence).content);
    const [type, value] = pair;
    if (attributes.length !== 1 || pair.length !== 2 || type === undefined || value === undefined) {
      throw refused('has a subject with a multi-valued part; accepted is CN and O, each once');
    }
    if (![tag.utf8String, tag.printableString, tag.ia5String].some((accepted) => accepted === value.tag)) {
      throw refused('has a subject that is no UTF8String, PrintableString or IA5String');
    }
    const key = hexOf(type.raw);
    if (found.has(key)) throw refused('names a part of its subject twice; accepted is CN and O, each once');
    found.set(key, Buffer.from(value.content).toString('utf8'));
  }
  const commonName = found.get(oidHex(oids.commonName));
  const organization = found.get(oidHex(oids.organization));
  if (commonName === undefined || organization === undefined || found.size !== 2) {
    throw refused(`has a subject of ${found.size} part(s); accepted is exactly one CN and one O`);
  }
  return { commonName, organization };
}

export interface CertificateRequest extends Subject {
  readonly publicKey: KeyObject;
}

/** Parses and proves possession of the key; refuses a subject of anything but one CN and one O, which Kubernetes could read otherwise. */
export function readCertificateRequest(pem: string): CertificateRequest {
  const parts = readAll(readOne(readPem(pem, pemLabel), tag.sequence).content);
  const [info, algorithm, signature] = parts;
  if (parts.length !== 3 || info === undefined) throw refused('does not have the three parts of PKCS#10');
  const fields = readAll(expectTag(info, tag.sequence).content);
  if (hexOf(fields[0]?.raw ?? Uint8Array.of()) !== version0) throw refused('is not of version 1 of PKCS#10');
  if (fields.length > 4 || (fields[3] !== undefined && fields[3].tag !== tag.context0))
    throw refused('has other parts than version, subject, key and attributes');
  const subject = readSubject(expectTag(fields[1], tag.sequence));
  const spki = expectTag(fields[2], tag.sequence);
  const algorithmId = readAll(expectTag(algorithm, tag.sequence).content)[0];
  const signedBy = algorithmId === undefined ? undefined : algorithms[hexOf(algorithmId.raw)];
  if (signedBy === undefined)
    throw refused('is signed by an unknown algorithm; accepted are Ed25519, and RSA or ECDSA with SHA-2');
  let publicKey: KeyObject;
  try {
    publicKey = createPublicKey({ key: Buffer.from(spki.raw), format: 'der', type: 'spki' });
  } catch {
    throw refused('holds no public key; accepted are Ed25519, RSA and ECDSA keys');
  }
  if (publicKey.asymmetricKeyType !== signedBy.keys)
    throw refused(
      `is signed by an algorithm for ${signedBy.keys} keys, but holds a key of type ${publicKey.asymmetricKeyType}; accepted are Ed25519, RSA and ECDSA`,
    );
  const bits = expectTag(signature, tag.bitString).content;
  if (bits[0] !== 0 || !verifyWith(publicKey, info.raw, bits.subarray(1), signedBy.digest)) {
    throw refused('is not signed by the key it holds');
  }
  return { ...subject, publicKey };
}

/** Throws, with a message for the author of the request, unless it asks for `subject` with `publicKey` (any key when undefined). */
export function checkCertificateRequest(pem: string, subject: Subject, publicKey: KeyObject | undefined): void {
  const request = readCertificateRequest(pem);
  if (request.commonName !== subject.commonName) {
    throw refused(`asks for CN "${request.commonName}"; accepted is "${subject.commonName}"`);
  }
  if (request.organization !== subject.organization) {
    throw refused(`asks for O "${request.organization}"; accepted is "${subject.organization}"`);
  }
  if (
    publicKey !== undefined &&
    !Buffer.from(publicKeyDer(publicKey)).equals(Buffer.from(publicKeyDer(request.publicKey)))
  ) {
    throw refused('is for another key than spec.publicKey of the Tenant; sign it with the key of the consumer cluster');
  }
}
