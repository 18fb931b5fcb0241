/** Field schemas that several kinds share. JSON Schema details that the API server needs stand in `.meta` and pass through the CRD emitter. */
import type { V1Affinity, V1ContainerImage, V1Taint, V1Toleration } from '@kubernetes/client-node';
import * as z from 'zod';
import type { Wire } from '#shared/domain/kube-object.ts';

import { ClusterId } from '../protocol/agent-protocol.ts';

export { ClusterId };

/**
 * Go's `[]byte`: base64 in JSON, never empty (leave the field out instead). A pattern and not `format: byte`: with that the API server takes
 * a list for a string, and a CEL rule against it reads the text as URL-safe base64 and refuses `+` and `/`.
 */
export const Bytes = z
  .string()
  .regex(/^([A-Za-z0-9+/]{4})*([A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=|[A-Za-z0-9+/]{4})$/, 'must be base64');
/** RFC 3339. */
export const Timestamp = z.iso.datetime({ offset: true, error: 'must be a time like 2026-01-31T12:00:00Z' });
export const StringMap = z.record(z.string(), z.string());

/** A Kubernetes quantity as stored: a user may write `cpu: 2` as a whole number. `shared/domain/quantity.ts` parses both. */
export const Quantity = z
  .union([
    z
      .string()
      .regex(
        /^(\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))(([KMGTPE]i)|[numkMGTPE]|([eE](\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))))?$/,
        'must be a Kubernetes quantity, for example 2, 500m or 4Gi',
      ),
    z.int(),
  ])
  .meta({ 'x-kubernetes-int-or-string': true });
export type Quantity = z.infer<typeof Quantity>;
export const ResourceList = z.record(z.string(), Quantity).describe('Resource name to quantity.');
export type ResourceList = z.infer<typeof ResourceList>;

export const LimitsEnforcement = z.enum(['Hard', 'Soft', 'None']);
export type LimitsEnforcement = z.infer<typeof LimitsEnforcement>;

const isObject = (value: unknown): boolean => typeof value === 'object' && value !== null && !Array.isArray(value);

/** A core type that we pass on whole: typed for the compiler, an object for the API server. */
export const opaque = <T extends object>(): z.ZodType<T> =>
  z.custom<T>(isObject).meta({ type: 'object', 'x-kubernetes-preserve-unknown-fields': true });

/** Gives a zod schema the core type that it describes (which differs only in `| undefined` of optional members). */
export const describing = <T>(schema: z.ZodType): z.ZodType<T> => schema as z.ZodType<T>;

export const LocalObjectReference = z.object({ name: z.string().optional() });

export const ObjectReference = z.object({
  apiVersion: z.string().optional(),
  kind: z.string().optional(),
  namespace: z.string().optional(),
  name: z.string().optional(),
  uid: z.string().optional(),
  resourceVersion: z.string().optional(),
  fieldPath: z.string().optional(),
});

const AwsConfig = z.object({
  awsUserArn: z.string(),
  awsAccessKeyID: z.string(),
  awsSecretAccessKey: z.string(),
  awsRegion: z.string(),
  awsClusterName: z.string(),
});

/** Of a token of an API server, many times over. */
const SealedToken = z
  .string()
  .max(16_384)
  .regex(/^[A-Za-z0-9_-]+(\.[A-Za-z0-9_-]*){4}$/, 'must be a compact JWE');

/** What a consumer needs to log in at the provider, besides its private key. */
export const AuthParams = z.object({
  ca: Bytes.optional().describe("PEM bundle of the provider's API server."),
  signedCRT: Bytes.optional().describe('PEM certificate that the provider signed.'),
  apiServer: z.string().optional().describe('URL of the API server of the provider.'),
  proxyURL: z.string().optional().describe('Proxy to go through to reach that API server.'),
  sealedToken: SealedToken.optional().describe(
    'Ours, where the provider signs no certificates: a token that only the key of the consumer cluster opens (docs/credentials.md). Compact JWE.',
  ),
  tokenExpiration: Timestamp.optional().describe('Ours: when the token in `sealedToken` ends.'),
  awsConfig: AwsConfig.optional().describe('Present for EKS: IAM user instead of a certificate.'),
});
export type AuthParams = z.infer<typeof AuthParams>;

export const StorageType = z.object({
  storageClassName: z.string(),
  default: z.boolean().optional(),
  volumeBindingMode: z
    .enum(['Immediate', 'WaitForFirstConsumer'])
    .optional()
    .describe('Of the class at the provider. Liqo does not know it and drops it.'),
  allowVolumeExpansion: z.boolean().optional().describe('Whether claims may grow. Liqo does not know it and drops it.'),
  maximumVolumeSize: Quantity.optional().describe(
    'The largest claim of this class that can be made now: what is left of the grant and, where its driver tells, of its storage. Absent: not limited, or not known. Liqo does not know it and drops it.',
  ),
});
export type StorageType = z.infer<typeof StorageType>;
export const IngressType = z.object({ ingressClassName: z.string(), default: z.boolean().optional() });
export type IngressType = z.infer<typeof IngressType>;
export const LoadBalancerType = z.object({ loadBalancerClassName: z.string(), default: z.boolean().optional() });
export type LoadBalancerType = z.infer<typeof LoadBalancerType>;

/** Liqo's condition form with a closed set of types and statuses. */
export const conditionOf = <Type extends z.ZodType, Status extends z.ZodType>(type: Type, status: Status) =>
  z.object({
    type,
    status,
    lastTransitionTime: Timestamp.optional(),
    reason: z.string().optional(),
    message: z.string().optional(),
  });

/** The condition form of Kubernetes itself, for our own kinds. */
const Condition = z.object({
  type: z.string().min(1),
  status: z.enum(['True', 'False', 'Unknown']),
  observedGeneration: z.int().min(0).optional(),
  lastTransitionTime: Timestamp,
  reason: z.string().min(1),
  message: z.string(),
});
export const Conditions = z
  .array(Condition)
  .meta({ 'x-kubernetes-list-type': 'map', 'x-kubernetes-list-map-keys': ['type'] });

export const Toleration = describing<Wire<V1Toleration>>(
  z.object({
    key: z.string().optional(),
    operator: z.enum(['Exists', 'Equal']).optional(),
    value: z.string().optional(),
    effect: z.enum(['NoSchedule', 'PreferNoSchedule', 'NoExecute']).optional(),
    tolerationSeconds: z.int().optional(),
  }),
);
export const Taint = describing<Wire<V1Taint>>(
  z.object({
    key: z.string().min(1),
    value: z.string().optional(),
    effect: z.enum(['NoSchedule', 'PreferNoSchedule', 'NoExecute']),
    timeAdded: Timestamp.optional(),
  }),
);
export const ContainerImage = describing<Wire<V1ContainerImage>>(
  z.object({ names: z.array(z.string()).optional(), sizeBytes: z.int().optional() }),
);
const NodeSelectorRequirement = z.object({
  key: z.string(),
  operator: z.enum(['In', 'NotIn', 'Exists', 'DoesNotExist', 'Gt', 'Lt']),
  values: z.array(z.string()).optional(),
});
const NodeSelectorTerm = z.object({
  matchExpressions: z.array(NodeSelectorRequirement).optional(),
  matchFields: z.array(NodeSelectorRequirement).optional(),
});
/** Terms are ORed, the expressions of one term ANDed. The default turns the `null` that Go clients send for an empty list into `[]`. */
export const NodeSelectorSchema = z.object({ nodeSelectorTerms: z.array(NodeSelectorTerm).default([]) });
export const NodeAffinity = describing<NonNullable<Wire<V1Affinity>['nodeAffinity']>>(
  z.object({
    requiredDuringSchedulingIgnoredDuringExecution: NodeSelectorSchema.optional(),
    preferredDuringSchedulingIgnoredDuringExecution: z
      .array(z.object({ weight: z.int().min(1).max(100), preference: NodeSelectorTerm }))
      .optional(),
  }),
);
