/** Which class of this cluster a virtual one stands for here. Pure. */
import type { StorageClass } from '#shared/domain/core-kinds.ts';
import { localClassParameter } from '#shared/domain/storage-keys.ts';
import { isVirtual } from '#shared/domain/volumes.ts';
import { isDefaultClass } from './claims.ts';

export const realClasses = (classes: readonly StorageClass[]): readonly StorageClass[] =>
  classes.filter((one) => !isVirtual(one));

/** The class that is asked for, else the default one, else the only one; undefined: there is none, or none can be chosen. */
export function localClassOf(virtual: StorageClass, classes: readonly StorageClass[]): StorageClass | undefined {
  const real = realClasses(classes);
  const asked = virtual.parameters?.[localClassParameter];
  if (asked) return real.find(({ metadata }) => metadata.name === asked);
  return real.find(isDefaultClass) ?? (real.length === 1 ? real[0] : undefined);
}
