/**
 * The certificate of the webhook server: self-signed, pinned by the webhook configurations, so that no CA key has to be kept anywhere.
 * Written without a library for the reason given in `agent/pki/certificate-request.ts`.
 */
import { generateKeyPairSync, randomBytes, sign, X509Certificate } from 'node:crypto';
import net from 'node:net';
import { encode, oid, tag } from './der.ts';
import { writePem } from './pem.ts';

export interface ServingCertificate {
  readonly certificate: string;
  readonly privateKey: string;
}

export const lifetimeMs = 365 * 24 * 3600_000;
/** Against clocks of API servers that are behind ours. */
const backdateMs = 3600_000;

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

function extension(id: string, critical: boolean, value: Uint8Array): Uint8Array {
  const flag = critical ? [encode(more.boolean, Uint8Array.of(0xff))] : [];
  return encode(tag.sequence, oid(id), ...flag, encode(more.octetString, value));
}

/** YYMMDDhhmmssZ: good until 2049, which the lifetime stays well below. */
const utcTime = (ms: number): Uint8Array =>
  encode(more.utcTime, Buffer.from(`${new Date(ms).toISOString().replace(/[-:T]/g, '').slice(2, 14)}Z`));

function alternativeName(host: string): Uint8Array {
  if (net.isIPv4(host)) return encode(more.ipAddress, Uint8Array.from(host.split('.').map(Number)));
  return encode(more.dnsName, Buffer.from(host, 'ascii'));
}

/** For `hosts` (DNS names and IPv4 addresses), valid from `now` on. */
export function issueServingCertificate(hosts: readonly string[], now: number): ServingCertificate {
  const { publicKey, privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
  const serial = randomBytes(16);
  serial[0] = ((serial[0] ?? 0) & 0x7f) | 0x40;
  const commonName = encode(tag.sequence, oid('2.5.4.3'), encode(tag.utf8String, Buffer.from('isthmus-webhook')));
  const subject = encode(tag.sequence, encode(tag.set, commonName));
  const extensions = [
    extension('2.5.29.19', true, encode(tag.sequence)),
    extension('2.5.29.15', true, Uint8Array.of(tag.bitString, 2, 7, 0x80)),
    extension('2.5.29.37', false, encode(tag.sequence, oid('1.3.6.1.5.5.7.3.1'))),
    extension('2.5.29.17', false, encode(tag.sequence, ...hosts.map(alternativeName))),
  ];
  const body = encode(
    tag.sequence,
    encode(more.version, encode(tag.integer, Uint8Array.of(2))),
    encode(tag.integer, serial),
    ecdsaWithSha256,
    subject,
    encode(tag.sequence, utcTime(now - backdateMs), utcTime(now + lifetimeMs)),
    subject,
    publicKey.export({ type: 'spki', format: 'der' }),
    encode(more.extensions, encode(tag.sequence, ...extensions)),
  );
  const signature = sign('sha256', body, privateKey);
  return {
    certificate: writePem('CERTIFICATE', encode(tag.sequence, body, ecdsaWithSha256, bits(signature))),
    privateKey: privateKey.export({ type: 'pkcs8', format: 'pem' }).toString(),
  };
}

/** Whether it can serve `hosts` for at least another third of its life. */
export function isFresh(
  { certificate, privateKey }: Partial<ServingCertificate>,
  hosts: readonly string[],
  now: number,
): boolean {
  if (!certificate || !privateKey) return false;
  try {
    const parsed = new X509Certificate(certificate);
    const covers = (host: string): boolean =>
      (net.isIP(host) ? parsed.checkIP(host) : parsed.checkHost(host)) !== undefined;
    return (
      Date.parse(parsed.validTo) - now > lifetimeMs / 3 && Date.parse(parsed.validFrom) <= now && hosts.every(covers)
    );
  } catch {
    return false;
  }
}

/** Certificates of a PEM bundle that are still valid, newest first in the order given. */
export function validCertificates(bundle: string, now: number): string[] {
  const blocks = bundle.match(/-----BEGIN CERTIFICATE-----[^-]+-----END CERTIFICATE-----\n?/g) ?? [];
  return blocks.filter((block) => {
    try {
      return Date.parse(new X509Certificate(block).validTo) > now;
    } catch {
      return false;
    }
  });
}
