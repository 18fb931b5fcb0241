/** The user that a slice's virtual node is at the provider: CN of its certificate, name and subject of its Quota. */
import { createHash } from 'node:crypto';
import type { Subject } from '#agent/pki/certificate-request.ts';
import { controlPlaneGroup } from '#shared/domain/liqo-keys.ts';

export const sliceUser = (slice: string, consumer: string): string =>
  `${slice}-${createHash('sha256').update(consumer).digest('hex').slice(0, 12)}`;

export const sliceSubject = (slice: string, consumer: string): Subject => ({
  commonName: sliceUser(slice, consumer),
  organization: consumer,
});

export const controlPlaneSubject = (consumer: string): Subject => ({
  commonName: consumer,
  organization: controlPlaneGroup,
});
