/**
 * The certificate of the webhook server: self-signed, pinned by the webhook configurations, so that no CA key has to be kept anywhere.
 */
import { generateKeyPairSync, X509Certificate } from 'node:crypto';
import net from 'node:net';
import { extensions, nameOf, writeCertificate } from './write-certificate.ts';

export interface ServingCertificate {
  readonly certificate: string;
  readonly privateKey: string;
}

export const lifetimeMs = 365 * 24 * 3600_000;
/** Against clocks of API servers that are behind ours. */
const backdateMs = 3600_000;

/** For `hosts` (DNS names and IPv4 addresses), valid from `now` on. */
export function issueServingCertificate(hosts: readonly string[], now: number): ServingCertificate {
  const { publicKey, privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
  const name = nameOf({ commonName: 'isthmus-webhook' });
  const content = {
    ...{ subject: name, issuer: name, publicKey },
    notBeforeMs: now - backdateMs,
    notAfterMs: now + lifetimeMs,
    extensions: [
      extensions.endEntity,
      extensions.keyUsage('digitalSignature'),
      extensions.usedBy('server'),
      extensions.alternativeNames(hosts),
    ],
  };
  return {
    certificate: writeCertificate(content, privateKey),
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
