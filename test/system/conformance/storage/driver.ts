/** Class `liqo` as Kubernetes' suites for storage drivers are told of it (`e2e.test -storage.testdriver=FILE`). Pure. */

/** Where pods and volumes are: in the suite's own cluster, or on a virtual node of it. */
export const places = ['here', 'provider'] as const;
export type Place = (typeof places)[number];

/** What the class offers. Everything that is not named here is not offered, and the suite skips what asks for it. */
const capabilities = {
  persistence: true,
  exec: true,
  block: true,
  fsGroup: true,
  multipods: true,
  readWriteOncePod: true,
  controllerExpansion: true,
  nodeExpansion: true,
  pvcDataSource: true,
  snapshotDataSource: true,
  // The classes behind it in the test bed have the file of a volume on one node.
  singleNodeVolume: true,
} as const;

/** Names of VolumeSnapshotClasses: of the driver that has volumes in the test bed, and of ours, for volumes at providers. */
const snapshotClassOf = { here: 'loop', provider: 'isthmus' } as const satisfies Record<Place, string>;

/** In the suite's own format. It copies the classes, under names of its own. */
export const driverFile = (place: Place): string =>
  JSON.stringify({
    StorageClass: { FromExistingClassName: 'liqo' },
    SnapshotClass: { FromExistingClassName: snapshotClassOf[place] },
    DriverInfo: {
      Name: 'liqo',
      SupportedSizeRange: { Min: '32Mi' },
      RequiredAccessModes: ['ReadWriteOnce'],
      Capabilities: capabilities,
    },
  });
