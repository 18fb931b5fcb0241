/** offloading.liqo.io NamespaceOffloading: makes its namespace exist at providers too. Always named `offloading`. */
import * as z from 'zod';
import type { KubeResource, NodeSelector } from '#shared/domain/kube-object.ts';
import { namespaceOffloadingName } from '#shared/domain/liqo-keys.ts';
import { conditionOf, describing, NodeSelectorSchema } from '../definition/fields.ts';
import { ageColumn, cel, defineKind, immutable } from '../definition/kind.ts';

export const NamespaceMappingStrategy = z.enum(['EnforceSameName', 'DefaultName', 'SelectedName']);
export type NamespaceMappingStrategy = z.infer<typeof NamespaceMappingStrategy>;
export const PodOffloadingStrategy = z.enum(['Local', 'Remote', 'LocalAndRemote']);
export type PodOffloadingStrategy = z.infer<typeof PodOffloadingStrategy>;
const OffloadingPhase = z.enum(['Ready', 'NoClusterSelected', 'InProgress', 'SomeFailed', 'AllFailed', 'Terminating']);

const RemoteNamespaceConditionType = z.enum(['OffloadingRequired', 'Ready']);
export const RemoteNamespaceCondition = conditionOf(RemoteNamespaceConditionType, z.enum(['True', 'False', 'Unknown']));
export type RemoteNamespaceCondition = z.infer<typeof RemoteNamespaceCondition>;

export const NamespaceOffloadingSpec = z
  .object({
    namespaceMappingStrategy: NamespaceMappingStrategy.default('DefaultName')
      .meta(immutable('namespaceMappingStrategy'))
      .describe('Name at the provider: the same, `<namespace>-<consumer>`, or the one in remoteNamespaceName.'),
    remoteNamespaceName: z
      .string()
      .max(63)
      .regex(/^([a-z0-9]([-a-z0-9]*[a-z0-9])?)?$/)
      .optional()
      .describe('Used, and needed, only with SelectedName.'),
    podOffloadingStrategy: PodOffloadingStrategy.default('LocalAndRemote').describe(
      'Where the pods of this namespace may run.',
    ),
    clusterSelector: describing<NodeSelector>(NodeSelectorSchema)
      .optional()
      .describe('Selects virtual nodes by their labels; absent or without terms: every provider.'),
  })
  .meta(
    cel(
      {
        rule: "self.namespaceMappingStrategy != 'SelectedName' || (has(self.remoteNamespaceName) && self.remoteNamespaceName != '')",
        message: 'remoteNamespaceName is required with namespaceMappingStrategy SelectedName',
        fieldPath: '.remoteNamespaceName',
        reason: 'FieldValueRequired',
      },
      {
        rule: "(has(self.remoteNamespaceName) ? self.remoteNamespaceName : '') == (has(oldSelf.remoteNamespaceName) ? oldSelf.remoteNamespaceName : '')",
        message: 'remoteNamespaceName is immutable: delete the object and create it again',
        fieldPath: '.remoteNamespaceName',
        reason: 'FieldValueForbidden',
      },
    ),
  )
  .refine((spec) => spec.namespaceMappingStrategy !== 'SelectedName' || Boolean(spec.remoteNamespaceName), {
    path: ['remoteNamespaceName'],
    message: 'is required with namespaceMappingStrategy SelectedName',
  });
export type NamespaceOffloadingSpec = z.infer<typeof NamespaceOffloadingSpec>;

export const NamespaceOffloadingStatus = z.object({
  remoteNamespaceName: z.string().optional(),
  offloadingPhase: OffloadingPhase.optional(),
  remoteNamespacesConditions: z
    .record(z.string(), z.array(RemoteNamespaceCondition))
    .optional()
    .describe('By name of the NamespaceMap, which is the cluster ID of the provider.'),
  observedGeneration: z.int().optional(),
});
export type NamespaceOffloadingStatus = z.infer<typeof NamespaceOffloadingStatus>;

export type NamespaceOffloading = KubeResource<NamespaceOffloadingSpec, NamespaceOffloadingStatus>;

export const namespaceOffloadings = defineKind<NamespaceOffloading>({
  group: 'offloading.liqo.io',
  version: 'v1beta1',
  kind: 'NamespaceOffloading',
  plural: 'namespaceoffloadings',
  namespaced: true,
  shortNames: ['nso', 'nsof', 'nsoff', 'nsoffloading'],
  categories: ['liqo'],
  description: 'Makes its namespace exist at providers too, so that its pods can run there.',
  writers: { object: 'a user, `isthmus offload` or liqoctl', status: 'namespace offloading controller' },
  columns: [
    { name: 'NamespaceMappingStrategy', type: 'string', jsonPath: '.spec.namespaceMappingStrategy' },
    { name: 'PodOffloadingStrategy', type: 'string', jsonPath: '.spec.podOffloadingStrategy' },
    { name: 'OffloadingPhase', type: 'string', jsonPath: '.status.offloadingPhase' },
    { name: 'RemoteNamespaceName', type: 'string', jsonPath: '.status.remoteNamespaceName', priority: 10 },
    ageColumn,
  ],
  rules: [
    {
      rule: `self.metadata.name == '${namespaceOffloadingName}'`,
      message: `metadata.name must be '${namespaceOffloadingName}': there is at most one in each namespace`,
    },
  ],
  spec: NamespaceOffloadingSpec,
  status: NamespaceOffloadingStatus,
});
