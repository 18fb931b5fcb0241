/** The two X.509 texts that a kubelet endpoint needs: a request for a serving certificate, and a self-signed one to stand in for it. */
import { createPrivateKey, createPublicKey, sign } from 'node:crypto';
import net from 'node:net';
import { encode, oid, tag } from './der.ts';
import { writePem } from './pem.ts';

export interface ServingSubject {
  readonly nodeName: string;
  /** Where clients reach the endpoint. */
  readonly addresses: readonly string[];
}

/** Tags beyond those that reading requests needs. */
const der = {
  boolean: 0x01,
  octetString: 0x04,
  generalizedTime: 0x18,
  dnsName: 0x82,
  ipAddress: 0x87,
  context3: 0xa3,
} as const;
const oids = {
  commonName: '2.5.4.3',
  organization: '2.5.4.10',
  subjectAltName: '2.5.29.17',
  extendedKeyUsage: '2.5.29.37',
  serverAuth: '1.3.6.1.5.5.7.3.1',
  extensionRequest: '1.2.840.113549.1.9.14',
  ecdsaWithSha256: '1.2.840.10045.4.3.2',
} as const;

const text = (value: string): Uint8Array => encode(tag.utf8String, Buffer.from(value, 'utf8'));
const rdn = (type: string, value: string): Uint8Array => encode(tag.set, encode(tag.sequence, oid(type), text(value)));
const integer = (value: number): Uint8Array => encode(tag.integer, Uint8Array.of(value));

/** The subject that signer kubernetes.io/kubelet-serving insists on. */
const nameOf = (nodeName: string): Uint8Array =>
  encode(tag.sequence, rdn(oids.organization, 'system:nodes'), rdn(oids.commonName, `system:node:${nodeName}`));

function addressBytes(address: string): Uint8Array {
  if (net.isIPv4(address)) return Uint8Array.from(address.split('.').map(Number));
  const [head = '', tail = ''] = address.split('::');
  const groups = (part: string): number[] =>
    part === '' ? [] : part.split(':').map((group) => Number.parseInt(group, 16));
  const before = groups(head);
  const after = groups(tail);
  const middle = Array.from({ length: address.includes('::') ? 8 - before.length - after.length : 0 }, () => 0);
  return Uint8Array.from([...before, ...middle, ...after].flatMap((group) => [group >> 8, group & 0xff]));
}

function extensions({ addresses, nodeName }: ServingSubject): Uint8Array {
  const names = addresses.map((address) =>
    net.isIP(address) ? encode(der.ipAddress, addressBytes(address)) : encode(der.dnsName, Buffer.from(address)),
  );
  const alternatives = encode(tag.sequence, ...names, encode(der.dnsName, Buffer.from(nodeName)));
  const extension = (id: string, value: Uint8Array): Uint8Array =>
    encode(tag.sequence, oid(id), encode(der.octetString, value));
  return encode(
    tag.sequence,
    extension(oids.subjectAltName, alternatives),
    extension(oids.extendedKeyUsage, encode(tag.sequence, oid(oids.serverAuth))),
  );
}

const spkiOf = (privateKeyPem: string): Uint8Array =>
  createPublicKey(createPrivateKey(privateKeyPem)).export({ type: 'spki', format: 'der' });
const algorithm = encode(tag.sequence, oid(oids.ecdsaWithSha256));

/** What was signed, how, and the signature. */
const signed = (body: Uint8Array, privateKeyPem: string): Uint8Array =>
  encode(
    tag.sequence,
    body,
    algorithm,
    encode(tag.bitString, Uint8Array.of(0), sign('sha256', body, createPrivateKey(privateKeyPem))),
  );

/** PKCS#10; `privateKeyPem` is an ECDSA key. */
export function servingRequest(subject: ServingSubject, privateKeyPem: string): string {
  const wanted = encode(tag.sequence, oid(oids.extensionRequest), encode(tag.set, extensions(subject)));
  const body = encode(
    tag.sequence,
    integer(0),
    nameOf(subject.nodeName),
    spkiOf(privateKeyPem),
    encode(tag.context0, wanted),
  );
  return writePem('CERTIFICATE REQUEST', signed(body, privateKeyPem));
}

export interface Validity {
  readonly notBeforeMs: number;
  readonly notAfterMs: number;
}

const time = (ms: number): Uint8Array =>
  encode(der.generalizedTime, Buffer.from(`${new Date(ms).toISOString().replace(/[-:T]|\.\d+/g, '')}`));

/** `serial`: at most 20 random bytes. */
export function selfSignedCertificate(
  subject: ServingSubject,
  privateKeyPem: string,
  { notBeforeMs, notAfterMs }: Validity,
  serial: Uint8Array,
): string {
  const name = nameOf(subject.nodeName);
  const body = encode(
    tag.sequence,
    encode(tag.context0, integer(2)),
    // A leading 1 keeps the number positive and free of redundant bytes.
    encode(tag.integer, Uint8Array.of(1), serial.subarray(0, 19)),
    algorithm,
    name,
    encode(tag.sequence, time(notBeforeMs), time(notAfterMs)),
    name,
    spkiOf(privateKeyPem),
    encode(der.context3, extensions(subject)),
  );
  return writePem('CERTIFICATE', signed(body, privateKeyPem));
}
