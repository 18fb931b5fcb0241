/**
 * The front door (docs/in-band.md#the-front-door): which consumers come by it, and the certificates that open it, as their provider keeps them. They are in the Secret
 * that tokens of the same account are bound to, so that deleting it ends both. Pure.
 */
import { createHash } from 'node:crypto';
import { readPem } from '#agent/pki/pem.ts';
import type { Applied } from '#kube/model/types.ts';
import type { Secret } from '#shared/domain/kube-object.ts';
import { isthmusAnnotation } from '#shared/domain/liqo-keys.ts';
import { networkPort } from '#shared/domain/network-keys.ts';
import type { AuthParams } from '#shared/schema/definition/fields.ts';
import type { Tenant } from '#shared/schema/liqo/tenant.ts';
import type { Holder } from '../tenant/issued-certificate.ts';
import { buildCredentialSecret, issuedAtAnnotation } from './issued-token.ts';

/** `problem`: the Tenant asks for a door that its consumer could not reach. */
export type Door = { readonly apiServer: string } | { readonly problem: string };

/** Undefined: the consumer of this Tenant comes in another way. */
export function doorOf({ metadata, spec }: Tenant): Door | undefined {
  if (metadata.annotations?.[isthmusAnnotation.frontDoor] !== 'true') return undefined;
  const { proxyURL = '' } = spec;
  const [, host] = /^http:\/\/(\d{1,3}(?:\.\d{1,3}){3}):(\d+)\/?$/.exec(proxyURL) ?? [];
  if (host !== undefined && new URL(proxyURL).port === String(networkPort.apiServerProxy))
    return { apiServer: `https://${host}:${networkPort.frontDoor}` };
  return {
    problem: `spec.proxyURL, which is ${JSON.stringify(proxyURL)}, to be http://ADDRESS:${networkPort.apiServerProxy}: annotation ${isthmusAnnotation.frontDoor} is for consumers that come through the link`,
  };
}

export interface DoorCredential {
  /** base64 of the PEM request that it was issued for. */
  readonly csr: string;
  /** base64 of PEM. */
  readonly certificate: string;
  /** The one before, which the consumer uses until it has the new one. */
  readonly former?: string;
  readonly issuedAtMs: number;
  /** URL and CA (base64 of PEM) that the consumer was told with it. */
  readonly apiServer: string;
  readonly ca: string;
}

export function readDoor(secret: Secret | undefined): DoorCredential | undefined {
  const { csr, doorCertificate: certificate, formerDoorCertificate: former, doorUrl, doorCa: ca } = secret?.data ?? {};
  const { annotations = {}, deletionTimestamp } = secret?.metadata ?? {};
  const issuedAtMs = Date.parse(annotations[issuedAtAnnotation] ?? '');
  if (!csr || !certificate || !doorUrl || !ca || deletionTimestamp !== undefined || Number.isNaN(issuedAtMs))
    return undefined;
  const apiServer = Buffer.from(doorUrl, 'base64').toString();
  return { csr, certificate, ...(former && { former }), issuedAtMs, apiServer, ca };
}

export function buildDoorSecret(holder: Holder, credential: DoorCredential): Applied<Secret> {
  const bare = buildCredentialSecret(holder);
  const { csr, certificate, former, issuedAtMs, apiServer, ca } = credential;
  return {
    ...bare,
    metadata: { ...bare.metadata, annotations: { [issuedAtAnnotation]: new Date(issuedAtMs).toISOString() } },
    data: {
      ...{ csr, doorCertificate: certificate, doorUrl: Buffer.from(apiServer).toString('base64'), doorCa: ca },
      ...(former !== undefined && { formerDoorCertificate: former }),
    },
  };
}

/** What is told to the consumer. */
export const doorParams = (door: DoorCredential): Pick<AuthParams, 'signedCRT' | 'apiServer' | 'ca'> => ({
  signedCRT: door.certificate,
  apiServer: door.apiServer,
  ca: door.ca,
});

export const digestOf = (certificate: Uint8Array): string => createHash('sha256').update(certificate).digest('hex');

/** Digests of the certificates that open the door for the account of this Secret, in DER. */
export function doorDigests(secret: Secret): readonly string[] {
  const door = readDoor(secret);
  return [door?.certificate, door?.former].flatMap((one) => {
    if (one === undefined) return [];
    try {
      return [digestOf(readPem(Buffer.from(one, 'base64').toString(), 'CERTIFICATE'))];
    } catch {
      return [];
    }
  });
}
