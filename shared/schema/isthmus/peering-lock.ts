/** isthmus.dev PeeringLock: keys of administrators, by which this cluster trusts the clusters of one account. The broker never has their private halves. */
import * as z from 'zod';
import type { KubeResource } from '#shared/domain/kube-object.ts';
import { Bytes } from '../definition/fields.ts';
import { ageColumn, defineKind } from '../definition/kind.ts';
import { Fingerprint } from './trusted-peer.ts';

const PeeringLockSpec = z.object({
  keys: z
    .array(
      z.object({
        key: Bytes.describe('SubjectPublicKeyInfo (DER) of an Ed25519 key.'),
        holder: z.string().max(253).optional().describe('Words for people.'),
      }),
    )
    .max(32)
    .describe('What any one of these keys signs for a cluster of this account is trusted.'),
  own: z
    .object({
      fingerprint: Fingerprint.describe('Key of this cluster that is signed.'),
      signatures: z
        .array(
          z.object({
            key: Bytes.describe('Which key signed.'),
            at: z.int().min(0).describe('When; signed as well. Milliseconds since the epoch.'),
            signature: Bytes,
          }),
        )
        .max(8),
    })
    .optional()
    .describe('What this cluster shows to others of its account. Absent: it shows none.'),
});
type PeeringLockSpec = z.infer<typeof PeeringLockSpec>;

export type PeeringLock = KubeResource<PeeringLockSpec>;

export const peeringLocks = defineKind<PeeringLock>({
  group: 'isthmus.dev',
  version: 'v1alpha1',
  kind: 'PeeringLock',
  plural: 'peeringlocks',
  namespaced: false,
  shortNames: ['plock'],
  categories: ['isthmus'],
  description: 'Whose signature makes this cluster trust a cluster of the account that the lock is named after.',
  writers: { object: '`isthmus join` and `isthmus lock`, run by an administrator of the cluster' },
  columns: [{ name: 'Own', type: 'string', jsonPath: '.spec.own.fingerprint' }, ageColumn],
  spec: PeeringLockSpec,
});
