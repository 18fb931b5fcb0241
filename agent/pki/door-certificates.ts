/** The certificate authority of the front door (docs/in-band.md#the-front-door): it vouches for the door and for consumers at the door, and for nothing else. */
import { createPrivateKey, generateKeyPairSync, type KeyObject, X509Certificate } from 'node:crypto';
import type { Subject } from './certificate-request.ts';
import type { ServingCertificate } from './webhook-certificate.ts';
import { extensions, nameOf, writeCertificate } from './write-certificate.ts';

/** Certificate and key, PEM. */
export interface DoorAuthority {
  readonly certificate: string;
  readonly privateKey: string;
}

const dayMs = 24 * 3600_000;
/** Consumers keep it as the CA of their kubeconfigs, and have no way to learn of another one but through the door. */
const authorityDays = 3650;
const servingDays = 365;
/** Against clocks that are behind ours. */
const backdateMs = 3600_000;
const authorityName = nameOf({ commonName: 'isthmus-front-door' });
const toPem = (key: KeyObject): string => key.export({ type: 'pkcs8', format: 'pem' }).toString();

export function createDoorAuthority(now: number): DoorAuthority {
  const { publicKey, privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
  const certificate = writeCertificate(
    {
      ...{ subject: authorityName, issuer: authorityName, publicKey },
      notBeforeMs: now - backdateMs,
      notAfterMs: now + authorityDays * dayMs,
      extensions: [extensions.authority, extensions.keyUsage('certificateSigning')],
    },
    privateKey,
  );
  return { certificate, privateKey: toPem(privateKey) };
}

/** Whether both belong together and have more than a year left. */
export function isAuthority({ certificate, privateKey }: Partial<DoorAuthority>, now: number): boolean {
  if (!certificate || !privateKey) return false;
  try {
    const parsed = new X509Certificate(certificate);
    return (
      parsed.ca &&
      parsed.checkPrivateKey(createPrivateKey(privateKey)) &&
      Date.parse(parsed.validTo) - now > servingDays * dayMs
    );
  } catch {
    return false;
  }
}

const endOf = ({ certificate }: DoorAuthority): number => Date.parse(new X509Certificate(certificate).validTo);

/** Of the door itself, for `hosts` (IPv4 addresses as consumers call it). */
export function issueDoorServing(authority: DoorAuthority, hosts: readonly string[], now: number): ServingCertificate {
  const { publicKey, privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
  const certificate = writeCertificate(
    {
      subject: nameOf({ commonName: 'isthmus-front-door-server' }),
      ...{ issuer: authorityName, publicKey },
      notBeforeMs: now - backdateMs,
      notAfterMs: Math.min(now + servingDays * dayMs, endOf(authority)),
      extensions: [
        extensions.endEntity,
        extensions.keyUsage('digitalSignature'),
        extensions.usedBy('server'),
        extensions.alternativeNames(hosts),
      ],
    },
    createPrivateKey(authority.privateKey),
  );
  return { certificate, privateKey: toPem(privateKey) };
}

/** For a consumer at the door. `publicKey` must be proved to be the consumer's. */
export function issueDoorClient(
  authority: DoorAuthority,
  subject: Subject,
  publicKey: KeyObject,
  life: { readonly now: number; readonly seconds: number },
): string {
  return writeCertificate(
    {
      subject: nameOf(subject),
      ...{ issuer: authorityName, publicKey },
      notBeforeMs: life.now - backdateMs,
      notAfterMs: Math.min(life.now + life.seconds * 1000, endOf(authority)),
      extensions: [extensions.endEntity, extensions.keyUsage('digitalSignature'), extensions.usedBy('client')],
    },
    createPrivateKey(authority.privateKey),
  );
}
