/** Which StorageClasses of this cluster a consumer may use, and which resources of a grant are about storage. Pure. */
import { policiesAbout } from '#agent/model/policies.ts';
import type { StorageClass } from '#shared/domain/core-kinds.ts';
import { ownMember } from '#shared/domain/own-member.ts';
import { type Amounts, amountsOf } from '#shared/domain/pod-resources.ts';
import type { Resources } from '#shared/domain/quantity.ts';
import { isVirtual } from '#shared/domain/volumes.ts';
import type { StorageType } from '#shared/schema/definition/fields.ts';
import type { PeeringPolicy } from '#shared/schema/isthmus/peering-policy.ts';

const defaultMark = 'storageclass.kubernetes.io/is-default-class';
const classSuffix = '.storageclass.storage.k8s.io/';
const plain = ['requests.storage', 'persistentvolumeclaims'] as const;

/** As in a ResourceQuota: `requests.storage`, `persistentvolumeclaims`, and the same of one class. */
export const isStorageResource = (resource: string): boolean =>
  plain.some((one) => resource === one || resource.endsWith(`${classSuffix}${one}`));

/** By what a claim of this class counts. */
export const storageResources = (className: string) => ({
  bytes: [plain[0], `${className}${classSuffix}${plain[0]}`],
  claims: [plain[1], `${className}${classSuffix}${plain[1]}`],
});

/** Of all slices of a consumer together, by what each was granted: what one of them does not limit is not limited. */
export function storageLimits(grants: readonly Resources[]): Amounts {
  const [first, ...others] = grants.map(amountsOf);
  return Object.fromEntries(
    Object.entries(first ?? {}).flatMap(([name, amount]) => {
      const more = others.map((one) => ownMember(one, name));
      return more.every((one) => one !== undefined)
        ? [[name, more.reduce<bigint>((a, b) => a + (b ?? 0n), amount)]]
        : [];
    }),
  );
}

/** The class of a storage resource that is not among `offered`; undefined: there is none. */
export const unofferedClass = (resources: Readonly<Record<string, unknown>>, offered: readonly string[]) =>
  Object.keys(resources)
    .filter((resource) => isStorageResource(resource) && resource.includes(classSuffix))
    .map((resource) => resource.slice(0, resource.indexOf(classSuffix)))
    .find((name) => !offered.includes(name));

/** As the API server chooses it for claims that name no class: the newest of those that are marked. */
function defaultOf(classes: readonly StorageClass[]): string | undefined {
  const born = ({ metadata }: StorageClass): string => String(metadata.creationTimestamp ?? '');
  const marked = classes.filter(({ metadata }) => metadata.annotations?.[defaultMark] === 'true');
  return marked.sort((a, b) =>
    born(a) === born(b) ? (a.metadata.name < b.metadata.name ? -1 : 1) : born(a) < born(b) ? 1 : -1,
  )[0]?.metadata.name;
}

/**
 * Policies add up; one that says nothing offers the default class, and so does a cluster without any. Virtual classes are left out: their volumes
 * would be at a third cluster. Sorted by name.
 */
export function offeredClasses(
  policies: readonly PeeringPolicy[],
  consumer: string,
  classes: readonly StorageClass[],
): StorageType[] {
  const ofCluster = defaultOf(classes);
  const said =
    policies.length === 0
      ? [undefined]
      : policiesAbout(policies, 'asProvider', consumer).map(({ spec }) => spec.asProvider?.storageClasses);
  const isOffered = (name: string): boolean =>
    said.some((names) => (names === undefined ? name === ofCluster : names.includes('*') || names.includes(name)));
  return classes
    .filter((one) => !isVirtual(one) && isOffered(one.metadata.name))
    .sort((a, b) => (a.metadata.name < b.metadata.name ? -1 : 1))
    .map(({ metadata: { name }, volumeBindingMode, allowVolumeExpansion }) => ({
      storageClassName: name,
      ...(name === ofCluster && { default: true }),
      volumeBindingMode: volumeBindingMode === 'WaitForFirstConsumer' ? 'WaitForFirstConsumer' : 'Immediate',
      allowVolumeExpansion: allowVolumeExpansion === true,
    }));
}
