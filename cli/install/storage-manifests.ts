/** What a cluster needs so that claims of a virtual StorageClass get volumes: the class, the namespace of real claims, and rights there. Pure. */
import { agentAccount } from '#shared/domain/agent-roles.ts';
import type { Role, StorageClass } from '#shared/domain/core-kinds.ts';
import type { KubeObject, Namespace, RoleBinding } from '#shared/domain/kube-object.ts';
import { systemNamespace } from '#shared/domain/liqo-keys.ts';
import { localClassParameter, storageNamespace, virtualProvisioner } from '#shared/domain/storage-keys.ts';
import { installLabel } from './install-label.ts';

export interface StorageInstallOptions {
  readonly className: string;
  /** The class of claims that name none. */
  readonly isDefault: boolean;
  /** Of volumes in this cluster. Absent: its default class. */
  readonly localClass?: string;
}

const rbac = 'rbac.authorization.k8s.io';
const roleName = `${agentAccount}-volumes`;
const within = { namespace: storageNamespace, labels: { ...installLabel } } as const;

export const storageManifests = (options: StorageInstallOptions): KubeObject[] => [
  namespace(),
  role(),
  binding(),
  storageClass(options),
];

const namespace = (): Namespace => ({
  apiVersion: 'v1',
  kind: 'Namespace',
  metadata: { name: storageNamespace, labels: { ...installLabel } },
});

const role = (): Role => ({
  apiVersion: `${rbac}/v1`,
  kind: 'Role',
  metadata: { name: roleName, ...within },
  rules: [{ apiGroups: [''], resources: ['persistentvolumeclaims'], verbs: ['create', 'delete'] }],
});

const binding = (): RoleBinding => ({
  apiVersion: `${rbac}/v1`,
  kind: 'RoleBinding',
  metadata: { name: roleName, ...within },
  roleRef: { apiGroup: rbac, kind: 'Role', name: roleName },
  subjects: [{ kind: 'ServiceAccount', name: agentAccount, namespace: systemNamespace }],
});

export const storageClass = ({ className, isDefault, localClass }: StorageInstallOptions): StorageClass => ({
  apiVersion: 'storage.k8s.io/v1',
  kind: 'StorageClass',
  metadata: {
    name: className,
    labels: { ...installLabel },
    annotations: { 'storageclass.kubernetes.io/is-default-class': String(isDefault) },
  },
  provisioner: virtualProvisioner,
  volumeBindingMode: 'WaitForFirstConsumer',
  reclaimPolicy: 'Delete',
  allowVolumeExpansion: true,
  ...(localClass !== undefined && { parameters: { [localClassParameter]: localClass } }),
});
