/** isthmus.dev TrustedPeer: by which key this cluster knows a peer, and what it has agreed to. */
import * as z from 'zod';
import type { KubeResource } from '#shared/domain/kube-object.ts';
import { Bytes, Conditions, Timestamp } from '../definition/fields.ts';
import { ageColumn, defineKind } from '../definition/kind.ts';
import { PeeringRole } from '../protocol/agent-protocol.ts';

export const Fingerprint = z
  .string()
  .regex(/^sha256:[0-9a-f]{64}$/, 'must be sha256: and 64 hexadecimal digits')
  .describe('`sha256:` and the hex digest of the SubjectPublicKeyInfo.');

const TrustedPeerSpec = z.object({
  fingerprint: Fingerprint.optional().describe(
    'Key of that cluster, to which an administrator agrees. Absent: its first key is trusted as spec.trust of the PeeringPolicy says.',
  ),
  tenant: z
    .string()
    .min(1)
    .max(63)
    .optional()
    .describe(
      'Account of that cluster at the broker; a cluster of that name of another account is refused. Absent: the account that it had first.',
    ),
  consent: z
    .array(PeeringRole)
    .optional()
    .describe(
      'Roles of this cluster in peerings with that cluster to which an administrator agrees; needed where no PeeringPolicy has autoAccept. Counts for the key that is known when it is read: for another one, name that in fingerprint.',
    ),
});
type TrustedPeerSpec = z.infer<typeof TrustedPeerSpec>;

const TrustedPeerStatus = z.object({
  key: Bytes.optional().describe('SubjectPublicKeyInfo (DER) of the key by which this cluster knows that cluster.'),
  fingerprint: Fingerprint.optional().describe('Of that key.'),
  tenant: z
    .string()
    .optional()
    .describe('Account of that cluster at the broker, as it signed it; with firstKey Broker, as the broker says.'),
  trustedBy: z
    .enum(['Lock', 'Object', 'FirstUse'])
    .optional()
    .describe(
      'Why that key is trusted: the peering lock signed it, this object named it, or it was the first one seen.',
    ),
  trustedSince: Timestamp.optional(),
  announcedAt: z
    .int()
    .min(0)
    .optional()
    .describe('Version of the newest announcement; older ones are refused. Milliseconds since the epoch.'),
  lockedAt: z
    .int()
    .min(0)
    .optional()
    .describe(
      'When the lock signed that key; a key that it signed before does not come back. Milliseconds since the epoch.',
    ),
  agreed: z
    .array(PeeringRole)
    .optional()
    .describe('Roles that were agreed to once with that key: they stay agreed to when a policy changes.'),
  consentKey: Fingerprint.optional().describe(
    'Key for which spec.consent counts: the one that was known when it was read first, its successors, or the one in spec.fingerprint.',
  ),
  revoked: z
    .array(Fingerprint)
    .max(16)
    .optional()
    .describe(
      'Keys that were taken for those of that cluster until an administrator or a lock named another one. What was applied under them is taken back; only spec.fingerprint makes one trusted again.',
    ),
  offered: Fingerprint.optional().describe(
    'Key with which the broker presents that cluster, and which is not trusted.',
  ),
  conditions: Conditions.optional().describe(
    'AsConsumer, AsProvider (roles of this cluster): why documents about this peer are applied, or not.',
  ),
});
export type TrustedPeerStatus = z.infer<typeof TrustedPeerStatus>;

export type TrustedPeer = KubeResource<TrustedPeerSpec, TrustedPeerStatus>;

export const trustedPeers = defineKind<TrustedPeer>({
  group: 'isthmus.dev',
  version: 'v1alpha1',
  kind: 'TrustedPeer',
  plural: 'trustedpeers',
  namespaced: false,
  shortNames: ['tp'],
  categories: ['isthmus'],
  description:
    'By which key this cluster knows the cluster of the same name, and what its administrator has agreed to. Deleting it forgets both.',
  writers: {
    object: 'the agent, empty; an administrator or a GitOps tool fills in spec',
    status: 'channel of the agent',
  },
  columns: [
    { name: 'AsConsumer', type: 'string', jsonPath: '.status.conditions[?(@.type=="AsConsumer")].status' },
    { name: 'AsProvider', type: 'string', jsonPath: '.status.conditions[?(@.type=="AsProvider")].status' },
    { name: 'By', type: 'string', jsonPath: '.status.trustedBy' },
    { name: 'Fingerprint', type: 'string', jsonPath: '.status.fingerprint' },
    { name: 'Offered', type: 'string', jsonPath: '.status.offered', priority: 1 },
    ageColumn,
  ],
  spec: TrustedPeerSpec,
  status: TrustedPeerStatus,
  specPresence: 'defaulted',
});
