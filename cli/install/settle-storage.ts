/** Which virtual StorageClass a cluster gets: what was said, else what is installed. */
import type { KubeClient } from '#cli/cluster/open.ts';
import { type StorageClass, storageClasses } from '#shared/domain/core-kinds.ts';
import { sameJson } from '#shared/domain/json-equality.ts';
import { localClassParameter, virtualProvisioner } from '#shared/domain/storage-keys.ts';
import { isVirtual } from '#shared/domain/volumes.ts';
import { AppError } from '#shared/errors/app-error.ts';
import type { InstallFlags } from './install-flags.ts';
import { installLabel } from './install-label.ts';
import { type StorageInstallOptions, storageClass } from './storage-manifests.ts';

const defaultName = 'liqo';
const [[labelKey, labelValue]] = Object.entries(installLabel) as [[string, string]];

export const isInstalled = ({ metadata, provisioner }: StorageClass): boolean =>
  provisioner === virtualProvisioner && metadata.labels?.[labelKey] === labelValue;

/** Undefined: no storage. Fails with `invalid_input` for a class that the cluster lacks or that is another's. */
export async function settleStorage(kube: KubeClient, flags: InstallFlags): Promise<StorageInstallOptions | undefined> {
  if (!flags.storage) return undefined;
  const classes = await kube.list<StorageClass>(storageClasses);
  const installed = classes.find(isInstalled);
  const className = flags.storageClass ?? installed?.metadata.name ?? defaultName;
  const holder = classes.find(({ metadata }) => metadata.name === className);
  if (holder && holder.provisioner !== virtualProvisioner)
    throw new AppError(
      'invalid_input',
      `StorageClass ${className} is there and its provisioner is ${holder.provisioner}`,
      {
        detail: {
          field: 'storage-class',
          value: className,
          remedy: `choose another name with --storage-class, or --no-storage`,
        },
      },
    );
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
  return { className, isDefault, ...(localClass !== undefined && { localClass }) };
}

/** Parameters never change: a class that has others goes first. Volumes and claims that name it stay. */
export async function makeRoomForClass(kube: KubeClient, options: StorageInstallOptions): Promise<void> {
  const wanted = storageClass(options);
  const found = await kube.get<StorageClass>(storageClasses, { name: options.className });
  if (found && !sameJson(found.parameters ?? {}, wanted.parameters ?? {}))
    await kube.delete(storageClasses, { name: options.className });
}
