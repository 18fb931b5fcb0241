/** Where the volume of a claim is to be, by the node that the scheduler selected: in this cluster or at a provider, and of which class. Pure. */
import type { PersistentVolumeClaim, StorageClass } from '#shared/domain/core-kinds.ts';
import { localClassParameter, storageAnnotation } from '#shared/domain/storage-keys.ts';
import { isVirtual } from '#shared/domain/volumes.ts';
import type { StorageType } from '#shared/schema/definition/fields.ts';
import { awaitsUs, nodeOf } from '../model/claims.ts';
import { localClassOf, realClasses } from '../model/classes.ts';
import { dataSourceOf } from '../model/data-source.ts';

export type SelectedNode =
  | { readonly kind: 'real' }
  /** `offered`: StorageClasses of its provider; undefined or empty: none. */
  | { readonly kind: 'virtual'; readonly provider: string; readonly offered?: readonly StorageType[] | undefined }
  | { readonly kind: 'missing' };

export type Target =
  /** Nothing to do for now. */
  | { readonly kind: 'none' }
  /** A person must act. */
  | { readonly kind: 'refused'; readonly message: string }
  /** The scheduler must choose again. */
  | { readonly kind: 'elsewhere'; readonly message: string }
  | { readonly kind: 'local'; readonly storageClass: string }
  | {
      readonly kind: 'remote';
      readonly provider: string;
      readonly storageClass: string;
      readonly accessModes: readonly string[];
    };

export interface Choice {
  readonly classes: readonly StorageClass[];
  readonly nodeOf: (name: string) => SelectedNode;
}

const none: Target = { kind: 'none' };
const refused = (message: string): Target => ({ kind: 'refused', message });

export function targetOf(claim: PersistentVolumeClaim, { classes, nodeOf: find }: Choice): Target {
  const virtual = classes.find(({ metadata }) => metadata.name === claim.spec?.storageClassName);
  if (virtual === undefined || !isVirtual(virtual) || !awaitsUs(claim)) return none;
  const problem = problemOf(claim, virtual);
  if (problem !== undefined) return refused(problem);
  const name = nodeOf(claim);
  if (name === undefined) return none;
  const node = find(name);
  if (node.kind === 'missing')
    return { kind: 'elsewhere', message: `node ${name}, which the scheduler selected, is gone` };
  return node.kind === 'real' ? localTarget(virtual, classes) : remoteTarget(claim, name, node);
}

/** What neither side could keep to. */
function problemOf(claim: PersistentVolumeClaim, { metadata, ...virtual }: StorageClass): string | undefined {
  const { spec } = claim;
  const { name } = metadata;
  if (virtual.volumeBindingMode !== 'WaitForFirstConsumer')
    return `volumeBindingMode of StorageClass ${name} is ${virtual.volumeBindingMode ?? 'Immediate'}: accepted is WaitForFirstConsumer, because the volume is made in the cluster of its first pod`;
  const unknown = Object.keys(virtual.parameters ?? {}).filter((key) => key !== localClassParameter);
  if (unknown.length > 0)
    return `parameters of StorageClass ${name} has ${unknown.sort().join(', ')}: accepted is ${localClassParameter}; all else belongs to the class of the cluster that makes the volume`;
  if (virtual.mountOptions?.length)
    return `mountOptions of StorageClass ${name} is ${virtual.mountOptions.join(',')}: leave it out, the class of the cluster that makes the volume has them`;
  if (spec?.selector) return 'spec.selector is set: leave it out, volumes of this class are made and not found';
  const source = dataSourceOf(claim);
  if (source.kind === 'other' || (source.kind === 'claim' && source.name === claim.metadata.name))
    return `${source.field} is ${source.kind === 'other' ? source.says : 'the claim itself'}: accepted is another PersistentVolumeClaim or a VolumeSnapshot of namespace ${claim.metadata.namespace}, of which the volume is to be a copy, or no data source`;
  if (spec?.volumeAttributesClassName)
    return `spec.volumeAttributesClassName is ${spec.volumeAttributesClassName}: accepted is a claim without it; attributes belong to the class of the cluster that makes the volume`;
  return undefined;
}

function localTarget(virtual: StorageClass, classes: readonly StorageClass[]): Target {
  const real = realClasses(classes);
  const chosen = localClassOf(virtual, classes);
  if (chosen) return { kind: 'local', storageClass: chosen.metadata.name };
  const asked = virtual.parameters?.[localClassParameter];
  if (asked)
    return refused(
      `parameters.${localClassParameter} of StorageClass ${virtual.metadata.name} is ${asked}, which this cluster does not have: accepted is one of ${namesOf(real)}`,
    );
  return refused(
    `this cluster has no StorageClass for the volume: ${real.length === 0 ? 'there is none' : `${namesOf(real)} are there and none is the default`}; name one in parameters.${localClassParameter} of StorageClass ${virtual.metadata.name}`,
  );
}

const namesOf = (classes: readonly StorageClass[]): string =>
  classes
    .map(({ metadata }) => metadata.name)
    .sort()
    .join(', ') || 'none';

const modes = ['ReadWriteOnce', 'ReadOnlyMany', 'ReadWriteMany', 'ReadWriteOncePod'];

function remoteTarget(
  claim: PersistentVolumeClaim,
  node: string,
  { provider, offered = [] }: Extract<SelectedNode, { kind: 'virtual' }>,
): Target {
  const { annotations } = claim.metadata;
  const asked = annotations?.[storageAnnotation.remoteAccessModes]?.split(',').map((mode) => mode.trim());
  const wrong = asked?.find((mode) => !modes.includes(mode));
  if (wrong !== undefined)
    return refused(
      `annotation ${storageAnnotation.remoteAccessModes} names ${JSON.stringify(wrong)}: accepted is a comma list of ${modes.join(', ')}`,
    );
  if (offered.length === 0)
    return { kind: 'elsewhere', message: `cluster ${provider}, for which node ${node} stands, offers no storage` };
  const names = offered.map(({ storageClassName }) => storageClassName);
  const wanted = annotations?.[storageAnnotation.remoteStorageClass];
  if (wanted !== undefined && !names.includes(wanted))
    return refused(
      `annotation ${storageAnnotation.remoteStorageClass} is ${wanted}, which cluster ${provider} does not offer: accepted is one of ${names.join(', ')} (storage_class_not_offered)`,
    );
  const preset = offered.find((one) => one.default) ?? (offered.length === 1 ? offered[0] : undefined);
  // A copy is of the class of its source, or of that of the source's snapshot, which is known only beside that.
  const any = dataSourceOf(claim).kind === 'none' ? undefined : names[0];
  const storageClass = wanted ?? preset?.storageClassName ?? any;
  if (storageClass === undefined)
    return refused(
      `cluster ${provider} offers ${names.join(', ')} and none as the default: name one in annotation ${storageAnnotation.remoteStorageClass} of the claim`,
    );
  return { kind: 'remote', provider, storageClass, accessModes: asked ?? claim.spec?.accessModes ?? [] };
}
