/** networking.liqo.io PublicKey: the WireGuard key of one peer. Tenant namespace. */
import * as z from 'zod';
import type { KubeResource } from '#shared/domain/kube-object.ts';
import { Bytes } from '../definition/fields.ts';
import { ageColumn, cel, defineKind } from '../definition/kind.ts';
import { networkNames } from './network-names.ts';

const length = 'must be 32 bytes (44 characters of base64), as `wg pubkey` prints them';

const PublicKeySpec = z.object({
  publicKey: Bytes.max(44)
    .refine((text) => /^[^=]{43}=$/.test(text), length)
    .meta(cel({ rule: "self.matches('^[^=]{43}=$')", message: length }))
    .describe('32 bytes.'),
});
type PublicKeySpec = z.infer<typeof PublicKeySpec>;

export type PublicKey = KubeResource<PublicKeySpec>;

export const publicKeys = defineKind<PublicKey>({
  ...networkNames.publicKeys,
  shortNames: ['pk', 'pkies', 'pkey'],
  categories: ['liqo'],
  description: 'The WireGuard key of one peer.',
  writers: { object: 'broker, liqoctl or a user' },
  columns: [ageColumn],
  spec: PublicKeySpec,
});
