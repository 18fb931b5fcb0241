/** isthmus.dev PeeringPolicy: what this cluster agrees to. The cluster enforces it; the broker knows it to refuse early. */
import * as z from 'zod';
import type { KubeResource } from '#shared/domain/kube-object.ts';
import { Cidr } from '../definition/addresses.ts';
import { ResourceList } from '../definition/fields.ts';
import { ageColumn, defineKind } from '../definition/kind.ts';
import { GuestPolicy } from './guest-policy.ts';

const Peers = z
  .array(
    z
      .string()
      .max(63)
      .regex(/^(\*|[a-z0-9]([-a-z0-9]*[a-z0-9])?)$/),
  )
  .default(['*'])
  .describe('Cluster IDs; `*` for all.');

const loose = z.looseObject({}).meta({ 'x-kubernetes-preserve-unknown-fields': true });

export const ReflectedKind = z.enum([
  'service',
  'endpointslice',
  'ingress',
  'configmap',
  'secret',
  'serviceaccount',
  'persistentvolumeclaim',
  'event',
]);

export type ReflectedKind = z.infer<typeof ReflectedKind>;

/** As Liqo's book has it. */
export const defaultSharePercent = 90;

/**
 * How the first key of a peer may become trusted. `Broker` needs no key at all: what the broker says is applied, as before there were
 * announcements.
 */
export const TrustMode = z.enum(['Lock', 'Object', 'FirstUse', 'Broker']);
export type TrustMode = z.infer<typeof TrustMode>;
export const defaultTrust: readonly TrustMode[] = ['Lock', 'Object'];

export const PeeringPolicySpec = z.object({
  tenants: z
    .array(z.string().min(1))
    .default(['*'])
    .describe('Accounts at the broker whose clusters this policy is about; `*` for all.'),
  asConsumer: z
    .object({
      enabled: z.boolean().default(true),
      autoAccept: z
        .boolean()
        .default(false)
        .describe('True: requests within the limits are accepted without approval by hand.'),
      peers: Peers,
      nodeLabels: z
        .record(z.string().min(1), z.array(z.string()))
        .optional()
        .describe(
          'Labels that these providers may claim for their virtual nodes, each with the values that are believed, `*` for any. What is not listed is left out, but for architecture and operating system: by these labels a cluster selector decides where namespaces go, Secrets included.',
        ),
    })
    .optional()
    .describe('Taking capacity from others; absent: refused.'),
  asProvider: z
    .object({
      enabled: z.boolean().default(true),
      autoAccept: z
        .boolean()
        .default(false)
        .describe('True: requests within the limits are accepted without approval by hand.'),
      peers: Peers,
      maxResourcesPerPeer: ResourceList.default({}).describe(
        'Most that one consumer gets; what is not named is not limited.',
      ),
      classes: z.array(z.string().min(1)).default(['default']).describe('Resource classes that may be asked for.'),
      storageClasses: z
        .array(z.string().min(1))
        .optional()
        .describe(
          'StorageClasses of this cluster that claims of these consumers may name; `*` for all that are not virtual themselves. Absent: the default class of the cluster; empty: none.',
        ),
      retainedVolumeDays: z
        .int()
        .min(0)
        .max(36_500)
        .optional()
        .describe(
          'How long the data of claims that ended without an order to delete it is promised to be kept; 30 days unless a policy about the consumer says otherwise. Afterwards it is shown as expired, and still deleted only by `isthmus volume discard`.',
        ),
      sharePercent: z
        .int()
        .min(0)
        .max(10_000)
        .default(defaultSharePercent)
        .describe(
          'Most that all consumers together are granted, in percent of what the pods of this cluster itself leave free on its nodes. Slices shrink and grow with it; above 100 is overcommitment.',
        ),
      elastic: z
        .boolean()
        .default(false)
        .describe(
          'True: nodes are added as pods need them, so sharePercent is not looked at; only maxResourcesPerPeer limits.',
        ),
      namespaceDefaults: z
        .object({
          limitRange: loose.optional().describe('Spec of a LimitRange (core/v1).'),
          networkPolicy: loose.optional().describe('Spec of a NetworkPolicy (networking.k8s.io/v1).'),
          resourceQuota: loose.optional().describe('Spec of a ResourceQuota (core/v1), say of how many objects.'),
        })
        .optional()
        .describe('Put into every namespace of these consumers, and kept there; guests cannot change it.'),
      guests: GuestPolicy.optional().describe(
        'What pods and objects of these consumers may do here. Of several policies, each field counts as the first by name says that has it.',
      ),
    })
    .optional()
    .describe('Giving capacity to others; absent: refused.'),
  network: z
    .object({
      enabled: z.boolean().default(true).describe('False: no links to the peers that this policy is about.'),
      remoteCidrs: z
        .array(Cidr)
        .default([])
        .describe('Ranges within which those that a peer announces must lie; empty: any.'),
    })
    .optional()
    .describe('Links to peers; absent: allowed.'),
  trust: z
    .object({
      firstKey: z
        .array(TrustMode)
        .min(1)
        .default([...defaultTrust])
        .describe(
          'How the key of a peer that this cluster does not know may become trusted. Lock: a key of the PeeringLock of its account signed it. Object: its TrustedPeer names it (this always counts). FirstUse: the first key that the broker presents is taken, and no other afterwards. Broker: no key is asked for, and the broker is believed.',
        ),
    })
    .optional()
    .describe('Trust in peers of a broker; absent: Lock and Object.'),
  reflectedKinds: z
    .array(ReflectedKind)
    .default([...ReflectedKind.options])
    .describe(
      'Kinds, besides pods, whose objects may cross to or from a peer: as a consumer this cluster sends no others, as a provider it refuses others. `serviceaccount` are the tokens of pods. Events come back to a consumer only.',
    ),
});
export type PeeringPolicySpec = z.infer<typeof PeeringPolicySpec>;

export type PeeringPolicy = KubeResource<PeeringPolicySpec>;

export const peeringPolicies = defineKind<PeeringPolicy>({
  group: 'isthmus.dev',
  version: 'v1alpha1',
  kind: 'PeeringPolicy',
  plural: 'peeringpolicies',
  namespaced: false,
  shortNames: ['pp'],
  categories: ['isthmus'],
  description: 'What this cluster agrees to. Policies add up: what any one of them allows is allowed.',
  writers: { object: 'an administrator of the cluster; `isthmus join` makes the first' },
  columns: [
    { name: 'Consumer', type: 'boolean', jsonPath: '.spec.asConsumer.enabled' },
    { name: 'Provider', type: 'boolean', jsonPath: '.spec.asProvider.enabled' },
    ageColumn,
  ],
  spec: PeeringPolicySpec,
  specPresence: 'defaulted',
});
