/** Whether an object is reflected: the policy of its kind and its own annotations (docs/design/offloading.md#when-is-an-object-reflected). Pure. */
import type { KubeObject } from '#shared/domain/kube-object.ts';
import { annotation } from '#shared/domain/liqo-keys.ts';

export type PolicyType = 'DenyList' | 'AllowList';

/** An annotation counts unless it is absent or says `false`, in any case of letters; empty counts. */
export const isSet = (annotations: Readonly<Record<string, string>> | undefined, key: string): boolean =>
  annotations?.[key] !== undefined && annotations[key].toLowerCase() !== 'false';

export function isReflected({ metadata }: Pick<KubeObject, 'metadata'>, type: PolicyType): boolean {
  return type === 'DenyList'
    ? !isSet(metadata.annotations, annotation.skipReflection)
    : isSet(metadata.annotations, annotation.allowReflection);
}

/** What the object itself says, independent of the policy: of both together the careful one counts. */
function explicitly({ metadata }: Pick<KubeObject, 'metadata'>): boolean | undefined {
  if (isSet(metadata.annotations, annotation.skipReflection)) return false;
  return isSet(metadata.annotations, annotation.allowReflection) ? true : undefined;
}

/** Slices follow their Service, unless they speak for themselves. */
export const isSliceReflected = (
  slice: Pick<KubeObject, 'metadata'>,
  owner: Pick<KubeObject, 'metadata'> | undefined,
  type: PolicyType,
): boolean => explicitly(slice) ?? isReflected(owner ?? slice, type);

/** Every pod that talks to the consumer's API server needs the root CA: only an explicit word keeps it here. */
export const isRootCaReflected = (rootCa: Pick<KubeObject, 'metadata'>): boolean => explicitly(rootCa) ?? true;
