/** Reads issued certificates: subject, lifetime, and when to renew. */
import { X509Certificate } from 'node:crypto';
import { AppError } from '#shared/errors/app-error.ts';
import type { Subject } from './certificate-request.ts';

export interface Lifetime {
  readonly notBeforeMs: number;
  readonly notAfterMs: number;
}

const parse = (pem: string): X509Certificate => {
  try {
    return new X509Certificate(pem);
  } catch (cause) {
    throw new AppError('invalid_input', 'expected a PEM certificate, found something else', { cause });
  }
};

export function lifetimeOf(pem: string): Lifetime {
  const certificate = parse(pem);
  return { notBeforeMs: Date.parse(certificate.validFrom), notAfterMs: Date.parse(certificate.validTo) };
}

/** Whether the signer certified `subject` and nothing else: guards against reading a request otherwise than the signer does. */
export function certifies(pem: string, subject: Subject): boolean {
  const lines = parse(pem)
    .subject.split('\n')
    .filter((line) => line !== '')
    .sort();
  return lines.join('\n') === [`CN=${subject.commonName}`, `O=${subject.organization}`].join('\n');
}

/** Of a life: less than this part left when it is issued says that our clock is wrong, not that the life is short. */
const leastPart = 30;

/**
 * When two thirds of what it is good for are over. `issuedAtMs` and `requestedMs` are what we noted ourselves when it was issued: judging by
 * them instead of by `notBefore` keeps a clock that differs from the signer's from renewing for ever. Kubernetes dates certificates back by five
 * minutes, which count for nothing: of a signer that gives ten minutes, two thirds from `notBefore` on would be too late.
 */
export function renewAtMs(pem: string, issuedAtMs: number | undefined, requestedMs: number): number {
  const { notBeforeMs, notAfterMs } = lifetimeOf(pem);
  const lifeMs = notAfterMs - notBeforeMs;
  if (issuedAtMs === undefined) return notBeforeMs + (lifeMs * 2) / 3;
  const leftMs = notAfterMs - issuedAtMs;
  const goodForMs = leftMs >= lifeMs / leastPart ? Math.min(leftMs, lifeMs) : lifeMs;
  return issuedAtMs + (Math.min(goodForMs, requestedMs) * 2) / 3;
}

/** Undefined counts as older than anything. */
export const isNewer = (pem: string, than: string | undefined): boolean =>
  than === undefined || lifetimeOf(pem).notAfterMs > lifetimeOf(than).notAfterMs;
