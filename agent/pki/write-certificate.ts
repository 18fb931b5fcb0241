/** X.509 certificates, written without a library for the reason given in `agent/pki/certificate-request.ts`. Signers have keys on P-256. */
import { type KeyObject, randomBytes, sign } from 'node:crypto';
import net from 'node:net';
import { encode, oid, tag } from './der.ts';
import { writePem } from './pem.ts';

const more = {
  boolean: 0x01,
  octetString: 0x04,
  utcTime: 0x17,
  version: 0xa0,
  extensions: 0xa3,
  dnsName: 0x82,
  ipAddress: 0x87,
} as const;
const ecdsaWithSha256 = encode(tag.sequence, oid('1.2.840.10045.4.3.2'));
const bits = (content: Uint8Array): Uint8Array => encode(tag.bitString, Uint8Array.of(0), content);
const yes = encode(more.boolean, Uint8Array.of(0xff));

function extension(id: string, critical: boolean, value: Uint8Array): Uint8Array {
  return encode(tag.sequence, oid(id), ...(critical ? [yes] : []), encode(more.octetString, value));
}

/** YYMMDDhhmmssZ: good until 2049, which lifetimes stay well below. */
const utcTime = (ms: number): Uint8Array =>
  encode(more.utcTime, Buffer.from(`${new Date(ms).toISOString().replace(/[-:T]/g, '').slice(2, 14)}Z`));

function alternativeName(host: string): Uint8Array {
  if (net.isIPv4(host)) return encode(more.ipAddress, Uint8Array.from(host.split('.').map(Number)));
  return encode(more.dnsName, Buffer.from(host, 'ascii'));
}

const attribute = (id: string, value: string): Uint8Array =>
  encode(tag.set, encode(tag.sequence, oid(id), encode(tag.utf8String, Buffer.from(value, 'utf8'))));

/** The DER of a subject or an issuer. */
export const nameOf = (of: { readonly commonName: string; readonly organization?: string }): Uint8Array =>
  encode(
    tag.sequence,
    ...(of.organization === undefined ? [] : [attribute('2.5.4.10', of.organization)]),
    attribute('2.5.4.3', of.commonName),
  );

/** With the number of bits in the last byte that count for nothing. */
const usages = { digitalSignature: [7, 0x80], certificateSigning: [2, 0x04] } as const;
const users = { server: '1.3.6.1.5.5.7.3.1', client: '1.3.6.1.5.5.7.3.2' } as const;

export const extensions = {
  endEntity: extension('2.5.29.19', true, encode(tag.sequence)),
  authority: extension('2.5.29.19', true, encode(tag.sequence, yes)),
  keyUsage: (usage: keyof typeof usages) =>
    extension('2.5.29.15', true, encode(tag.bitString, Uint8Array.from(usages[usage]))),
  usedBy: (user: keyof typeof users) => extension('2.5.29.37', false, encode(tag.sequence, oid(users[user]))),
  /** DNS names and IPv4 addresses. */
  alternativeNames: (hosts: readonly string[]) =>
    extension('2.5.29.17', false, encode(tag.sequence, ...hosts.map(alternativeName))),
} as const;

export interface CertificateContent {
  readonly subject: Uint8Array;
  readonly issuer: Uint8Array;
  readonly publicKey: KeyObject;
  readonly notBeforeMs: number;
  readonly notAfterMs: number;
  readonly extensions: readonly Uint8Array[];
}

/** PEM, with a serial number drawn at random. `signer`: the private key of the issuer, on P-256. */
export function writeCertificate(content: CertificateContent, signer: KeyObject): string {
  const serial = randomBytes(16);
  serial[0] = ((serial[0] ?? 0) & 0x7f) | 0x40;
  const body = encode(
    tag.sequence,
    encode(more.version, encode(tag.integer, Uint8Array.of(2))),
    encode(tag.integer, serial),
    ecdsaWithSha256,
    content.issuer,
    encode(tag.sequence, utcTime(content.notBeforeMs), utcTime(content.notAfterMs)),
    content.subject,
    content.publicKey.export({ type: 'spki', format: 'der' }),
    encode(more.extensions, encode(tag.sequence, ...content.extensions)),
  );
  const signature = sign('sha256', body, signer);
  return writePem('CERTIFICATE', encode(tag.sequence, body, ecdsaWithSha256, bits(signature)));
}
