/** offloading.liqo.io NamespaceMap: which namespaces of a consumer exist under which name at one provider. Original on the consumer, copy on the provider. */
import * as z from 'zod';
import type { KubeResource } from '#shared/domain/kube-object.ts';
import { StringMap } from '../definition/fields.ts';
import { ageColumn, defineKind } from '../definition/kind.ts';

export const NamespaceMapPhase = z.enum(['Accepted', 'CreationLoopBackOff', 'Terminating']);
export type NamespaceMapPhase = z.infer<typeof NamespaceMapPhase>;

export const RemoteNamespaceStatus = z.object({
  remoteNamespace: z.string().optional(),
  phase: NamespaceMapPhase.optional(),
});
export type RemoteNamespaceStatus = z.infer<typeof RemoteNamespaceStatus>;

const NamespaceMapSpec = z.object({
  desiredMapping: StringMap.optional().describe('Local namespace to wanted namespace at the provider.'),
});
type NamespaceMapSpec = z.infer<typeof NamespaceMapSpec>;

const NamespaceMapStatus = z.object({
  currentMapping: z
    .record(z.string(), RemoteNamespaceStatus)
    .optional()
    .describe('Local namespace to what exists at the provider.'),
});
type NamespaceMapStatus = z.infer<typeof NamespaceMapStatus>;

export type NamespaceMap = KubeResource<NamespaceMapSpec, NamespaceMapStatus>;

export const namespaceMaps = defineKind<NamespaceMap>({
  group: 'offloading.liqo.io',
  version: 'v1beta1',
  kind: 'NamespaceMap',
  plural: 'namespacemaps',
  namespaced: true,
  shortNames: ['nm', 'nsmap'],
  categories: ['liqo'],
  description: 'Which namespaces of a consumer exist under which name at one provider.',
  writers: {
    object: 'virtual node controller (consumer) creates it, namespace offloading controller fills desiredMapping',
    status: 'namespace map controller (provider), copied back by the replicator',
  },
  columns: [{ name: 'Local', type: 'string', jsonPath: '.metadata.labels.liqo\\.io/replication' }, ageColumn],
  spec: NamespaceMapSpec,
  status: NamespaceMapStatus,
  specPresence: 'defaulted',
});
