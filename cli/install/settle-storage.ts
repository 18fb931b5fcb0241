/** Which virtual StorageClasses a cluster gets: what was said, else what is installed. */
import type { KubeClient } from '#cli/cluster/open.ts';
import { type StorageClass, storageClasses } from '#shared/domain/core-kinds.ts';
import { sameJson } from '#shared/domain/json-equality.ts';
import { localClassParameter, remoteVolumeDriver, virtualProvisioner } from '#shared/domain/storage-keys.ts';
import { isVirtual } from '#shared/domain/volumes.ts';
import { AppError } from '#shared/errors/app-error.ts';
import type { InstallFlags } from './install-flags.ts';
import { installLabel } from './install-label.ts';
import { capacityClass, type StorageInstallOptions, storageClass } from './storage-manifests.ts';

const [[labelKey, labelValue]] = Object.entries(installLabel) as [[string, string]];

/** Of the classes, unless told. */
export const presetClassNames = { plain: 'liqo', capacity: 'isthmus' } as const;

/** One of each, by what claims of it do about free storage. */
const installable = [
  { provisioner: virtualProvisioner, preset: presetClassNames.plain, field: 'storage-class' },
  { provisioner: remoteVolumeDriver, preset: presetClassNames.capacity, field: 'capacity-storage-class' },
] as const;
type Installable = (typeof installable)[number];

const isInstalledBy = ({ metadata, provisioner }: StorageClass, wanted: string): boolean =>
  provisioner === wanted && metadata.labels?.[labelKey] === labelValue;
export const isInstalled = (one: StorageClass): boolean =>
  installable.some(({ provisioner }) => isInstalledBy(one, provisioner));

/** Undefined: no storage. Fails with `invalid_input` for a class that the cluster lacks or that is another's. */
export async function settleStorage(kube: KubeClient, flags: InstallFlags): Promise<StorageInstallOptions | undefined> {
  if (!flags.storage) return undefined;
  const classes = await kube.list<StorageClass>(storageClasses);
  const [plain, measured] = installable;
  const installed = classes.find((one) => isInstalledBy(one, plain.provisioner));
  const className = settleName(classes, plain, flags.storageClass);
  const capacityClassName = settleName(classes, measured, flags.capacityStorageClass);
  if (className === capacityClassName)
    throw new AppError('invalid_input', `StorageClass ${className} cannot be both classes of Isthmus`, {
      detail: { field: measured.field, value: className, remedy: 'choose two names' },
    });
  const localClass = flags.localStorageClass ?? installed?.parameters?.[localClassParameter];
  const real = classes.filter((one) => !isVirtual(one)).map(({ metadata }) => metadata.name);
  if (flags.localStorageClass !== undefined && !real.includes(flags.localStorageClass))
    throw new AppError('invalid_input', `the cluster has no StorageClass ${flags.localStorageClass}`, {
      detail: {
        field: 'local-storage-class',
        value: flags.localStorageClass,
        remedy: `choose one of ${real.sort().join(', ') || 'none: make a StorageClass first'}`,
      },
    });
  const isDefault =
    flags.defaultStorageClass ??
    installed?.metadata.annotations?.['storageclass.kubernetes.io/is-default-class'] === 'true';
  return { className, capacityClassName, isDefault, ...(localClass !== undefined && { localClass }) };
}

function settleName(
  classes: readonly StorageClass[],
  { provisioner, preset, field }: Installable,
  said: string | undefined,
): string {
  const name = said ?? classes.find((one) => isInstalledBy(one, provisioner))?.metadata.name ?? preset;
  const holder = classes.find(({ metadata }) => metadata.name === name);
  if (holder && holder.provisioner !== provisioner)
    throw new AppError('invalid_input', `StorageClass ${name} is there and its provisioner is ${holder.provisioner}`, {
      detail: { field, value: name, remedy: `choose another name with --${field}, or --no-storage` },
    });
  return name;
}

/** Parameters never change: a class that has others goes first. Volumes and claims that name it stay. */
export async function makeRoomForClass(kube: KubeClient, options: StorageInstallOptions): Promise<void> {
  for (const wanted of [storageClass(options), capacityClass(options)]) {
    const { name } = wanted.metadata;
    const found = await kube.get<StorageClass>(storageClasses, { name });
    if (found && !sameJson(found.parameters ?? {}, wanted.parameters ?? {}))
      await kube.delete(storageClasses, { name });
  }
}
