/**
 * What a cluster needs so that claims of a virtual StorageClass get volumes: the classes, the record of the driver by which kube-scheduler looks for free
 * storage, the namespace of real claims and of what is said of free storage, and rights there. Pure.
 */
import { agentAccount } from '#shared/domain/agent-roles.ts';
import type { CsiDriver, Role, StorageClass } from '#shared/domain/core-kinds.ts';
import type { KubeObject, Namespace, RoleBinding } from '#shared/domain/kube-object.ts';
import { systemNamespace } from '#shared/domain/liqo-keys.ts';
import {
  localClassParameter,
  remoteVolumeDriver,
  storageNamespace,
  virtualProvisioner,
} from '#shared/domain/storage-keys.ts';
import { installLabel } from './install-label.ts';

export interface StorageInstallOptions {
  readonly className: string;
  /** Of the class whose claims go only where there is room for them. */
  readonly capacityClassName: string;
  /** `className` is the class of claims that name none. */
  readonly isDefault: boolean;
  /** Of volumes in this cluster. Absent: its default class. */
  readonly localClass?: string;
}

const rbac = 'rbac.authorization.k8s.io';
const roleName = `${agentAccount}-volumes`;
const within = { namespace: storageNamespace, labels: { ...installLabel } } as const;

export const storageManifests = (options: StorageInstallOptions): KubeObject[] => [
  namespace(),
  ...storageRights(),
  driver(),
  storageClass(options),
  capacityClass(options),
];

/** Of the agent, to make real claims and to say how much storage is free. */
export const storageRights = (): KubeObject[] => [role(), binding()];

/** Helm, Argo CD and Flux leave it where it is: the claims in it have the data of volumes. */
const namespace = (): Namespace => ({
  apiVersion: 'v1',
  kind: 'Namespace',
  metadata: {
    name: storageNamespace,
    labels: { ...installLabel },
    annotations: {
      'helm.sh/resource-policy': 'keep',
      'argocd.argoproj.io/sync-options': 'Prune=false,Delete=false',
      'kustomize.toolkit.fluxcd.io/prune': 'disabled',
    },
  },
});

const role = (): Role => ({
  apiVersion: `${rbac}/v1`,
  kind: 'Role',
  metadata: { name: roleName, ...within },
  rules: [
    { apiGroups: [''], resources: ['persistentvolumeclaims'], verbs: ['create', 'delete'] },
    { apiGroups: ['snapshot.storage.k8s.io'], resources: ['volumesnapshots'], verbs: ['create', 'delete'] },
    { apiGroups: ['storage.k8s.io'], resources: ['csistoragecapacities'], verbs: ['create', 'delete', 'patch'] },
  ],
});

const binding = (): RoleBinding => ({
  apiVersion: `${rbac}/v1`,
  kind: 'RoleBinding',
  metadata: { name: roleName, ...within },
  roleRef: { apiGroup: rbac, kind: 'Role', name: roleName },
  subjects: [{ kind: 'ServiceAccount', name: agentAccount, namespace: systemNamespace }],
});

/** No node has this driver: kube-scheduler reads in its record that CSIStorageCapacity objects say where there is room. */
const driver = (): CsiDriver => ({
  apiVersion: 'storage.k8s.io/v1',
  kind: 'CSIDriver',
  metadata: { name: remoteVolumeDriver, labels: { ...installLabel } },
  spec: { attachRequired: false, podInfoOnMount: false, storageCapacity: true, volumeLifecycleModes: ['Persistent'] },
});

const virtualClass = (
  name: string,
  provisioner: string,
  { localClass }: StorageInstallOptions,
  annotations?: Record<string, string>,
): StorageClass => ({
  apiVersion: 'storage.k8s.io/v1',
  kind: 'StorageClass',
  metadata: { name, labels: { ...installLabel }, ...(annotations && { annotations }) },
  provisioner,
  volumeBindingMode: 'WaitForFirstConsumer',
  reclaimPolicy: 'Delete',
  allowVolumeExpansion: true,
  ...(localClass !== undefined && { parameters: { [localClassParameter]: localClass } }),
});

export const storageClass = (options: StorageInstallOptions): StorageClass =>
  virtualClass(options.className, virtualProvisioner, options, {
    'storageclass.kubernetes.io/is-default-class': String(options.isDefault),
  });

export const capacityClass = (options: StorageInstallOptions): StorageClass =>
  virtualClass(options.capacityClassName, remoteVolumeDriver, options);
