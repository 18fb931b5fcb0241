/** Storage of a cluster of the bed: its driver's record, its classes, and the command line of the driver. Pure. */
import { volumesFolder } from './loop-devices.ts';
import { inNode } from './node-config.ts';
import { type ClusterSpec, type NodeSpec, usualStorageGiB } from './spec.ts';

/** As loopbox registers it. */
export const storageDriver = 'loop.isthmus.test';

/** `loop` is the default class and waits for the first pod; volumes of `loop-now` are made at once, in the first node. */
const classes = { loop: 'WaitForFirstConsumer', 'loop-now': 'Immediate' } as const;

export const storageAddons = (): { readonly path: string; readonly object: object }[] => [
  {
    path: `/apis/storage.k8s.io/v1/csidrivers/${storageDriver}`,
    object: {
      apiVersion: 'storage.k8s.io/v1',
      kind: 'CSIDriver',
      metadata: { name: storageDriver },
      spec: { attachRequired: false, podInfoOnMount: false, volumeLifecycleModes: ['Persistent'] },
    },
  },
  ...Object.entries(classes).map(([name, volumeBindingMode]) => ({
    path: `/apis/storage.k8s.io/v1/storageclasses/${name}`,
    object: {
      apiVersion: 'storage.k8s.io/v1',
      kind: 'StorageClass',
      metadata: {
        name,
        ...(name === 'loop' ? { annotations: { 'storageclass.kubernetes.io/is-default-class': 'true' } } : {}),
      },
      provisioner: storageDriver,
      reclaimPolicy: 'Delete',
      allowVolumeExpansion: true,
      volumeBindingMode,
    },
  })),
];

export const loopboxArgs = (
  slot: number,
  { nodes, storageGiB = usualStorageGiB }: ClusterSpec,
  { name }: NodeSpec,
): readonly string[] => [
  `--node=${name}`,
  `--volumes=${inNode.node}/${volumesFolder(slot, name)}`,
  `--kubeconfig=${inNode.cluster}/kubeconfig`,
  `--immediate=${nodes[0]?.name === name}`,
  `--capacity=${storageGiB * 2 ** 30}`,
];
