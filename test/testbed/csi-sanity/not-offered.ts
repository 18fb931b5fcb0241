/** Specs of csi-sanity that ask for what the test bed's driver does not offer, by the capability that each asks for. */
interface NotOffered {
  readonly because: string;
  /** As ginkgo prints them, sorted. */
  readonly specs: readonly string[];
}

export const notOffered: Readonly<Record<string, NotOffered>> = {
  GET_SNAPSHOT: {
    because: 'csi-snapshotter asks by LIST_SNAPSHOTS',
    specs: [
      'GetSnapshot [Controller Server] should return an error',
      'GetSnapshot [Controller Server] should return an error when the specified snapshot id does not exist',
      'GetSnapshot [Controller Server] should return snapshot that match the specified snapshot id',
    ],
  },
  GET_STORAGE_HEALTH: {
    because: 'files have no health of their own',
    specs: ['Node Service NodeGetStorageHealth should return appropriate response'],
  },
  GET_VOLUME_HEALTH: {
    because: 'files have no health of their own',
    specs: [
      'ControllerGetVolumeHealth [Controller Server] should fail when no volume id is provided',
      'ControllerGetVolumeHealth [Controller Server] should return health for a valid volume',
      'Node Service NodeGetVolumeHealth should fail when no volume id is provided',
      'Node Service NodeGetVolumeHealth should return health for a valid volume',
    ],
  },
  GET_VOLUME_STATS: {
    because: 'no test reads how full the kubelet finds a volume',
    specs: [
      'Node Service NodeGetVolumeStats should fail when no volume id is provided',
      'Node Service NodeGetVolumeStats should fail when no volume path is provided',
      'Node Service NodeGetVolumeStats should fail when volume does not exist on the specified path',
      'Node Service NodeGetVolumeStats should fail when volume is not found',
    ],
  },
  GROUP_CONTROLLER_SERVICE: {
    because: 'no test takes snapshots of several volumes at one moment',
    specs: [
      'GroupController Service [GroupController Server] GroupControllerGetCapabilities should return appropriate capabilities',
      'GroupController Service [GroupController VolumeGroupSnapshots] CreateVolumeGroupSnapshot should fail when no name is provided',
      'GroupController Service [GroupController VolumeGroupSnapshots] DeleteVolumeGroupSnapshot should fail when no volume id is provided',
      'GroupController Service [GroupController VolumeGroupSnapshots] DeleteVolumeGroupSnapshot should succeed when an invalid volume id is used',
      'GroupController Service [GroupController VolumeGroupSnapshots] GetVolumeGroupSnapshot should fail when an invalid volume id is used',
      'GroupController Service [GroupController VolumeGroupSnapshots] GetVolumeGroupSnapshot should fail when no volume id is provided',
    ],
  },
  LIST_VOLUMES: {
    because: 'nothing asks for it: the PersistentVolumes of the cluster are the list',
    specs: [
      'Controller Service [Controller Server] ListVolumes check the presence of new volumes and absence of deleted ones in the volume list',
      'Controller Service [Controller Server] ListVolumes should fail when an invalid starting_token is passed',
      'Controller Service [Controller Server] ListVolumes should return appropriate values (no optional values added)',
    ],
  },
  LIST_VOLUME_HEALTH: {
    because: 'files have no health of their own',
    specs: ['ControllerListVolumeHealth [Controller Server] should return appropriate response'],
  },
  MODIFY_VOLUME: {
    because: 'volumes have no attributes to modify',
    specs: [
      'Controller Service [Controller Server] CreateVolume should create volume with a volume attribute class',
      'Controller Service [Controller Server] CreateVolume should not create volume with an invalid volume attribute class',
      'ModifyVolume [Controller Server] should fail if no volume id is given',
      'ModifyVolume [Controller Server] should fail if specified mutable parameters are not supported by the volume',
      'ModifyVolume [Controller Server] should fail if volume does not exist',
      'ModifyVolume [Controller Server] should fail to modify a volume created with a volume attribute class if new mutable parameters are not supported by volume',
      'ModifyVolume [Controller Server] should modify a volume created with a volume attribute class',
      'ModifyVolume [Controller Server] should modify a volume created without a volume attribute class',
    ],
  },
  PUBLISH_UNPUBLISH_VOLUME: {
    because: 'nothing is attached: the file of a volume is on the node that uses it (attachRequired: false)',
    specs: [
      'Controller Service [Controller Server] ControllerPublishVolume should fail when no node id is provided',
      'Controller Service [Controller Server] ControllerPublishVolume should fail when no volume capability is provided',
      'Controller Service [Controller Server] ControllerPublishVolume should fail when no volume id is provided',
      'Controller Service [Controller Server] ControllerPublishVolume should fail when publishing more volumes than the node max attach limit',
      'Controller Service [Controller Server] ControllerPublishVolume should fail when the node does not exist',
      'Controller Service [Controller Server] ControllerPublishVolume should fail when the volume does not exist',
      'Controller Service [Controller Server] ControllerPublishVolume should fail when the volume is already published but is incompatible',
      'Controller Service [Controller Server] ControllerUnpublishVolume should fail when no volume id is provided',
      'Controller Service [Controller Server] volume lifecycle should be idempotent',
      'Controller Service [Controller Server] volume lifecycle should work',
    ],
  },
  SNAPSHOT_ACCESSIBILITY_CONSTRAINTS: {
    because: 'a snapshot is on the node of its volume, and csi-snapshotter knows that node by the label of its content',
    specs: [
      'CreateSnapshot [Controller Server] should succeed when creating a snapshot with accessibility requirements',
    ],
  },
};
