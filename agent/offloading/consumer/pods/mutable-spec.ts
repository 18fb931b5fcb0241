/**
 * What may change in a pod while it lives (images, sizes, deadline, tolerations, ephemeral containers), and how a change reaches the ShadowPod.
 * Everything here works on whole and on pruned specs alike.
 */
import { sameContent } from '#shared/domain/json-equality.ts';
import type { PodSpec } from '#shared/domain/kube-object.ts';
import { virtualNodeTaint } from '#shared/domain/liqo-keys.ts';
import type { OffloadingPatch } from '#shared/schema/liqo/virtual-node.ts';

type Toleration = NonNullable<PodSpec['tolerations']>[number];
type Ephemeral = NonNullable<PodSpec['ephemeralContainers']>[number];
type Resources = NonNullable<PodSpec['containers'][number]['resources']>;

interface MutableContainer {
  readonly name: string;
  readonly image?: string;
  /** Requests and limits: cpu and memory of a running container may be resized. */
  readonly resources?: Pick<Resources, 'requests' | 'limits'>;
}

/** The members of a pod's spec that may change while it lives, and that the provider's admission lets us change. */
export interface MutableSpec {
  readonly containers: readonly MutableContainer[];
  readonly initContainers?: readonly MutableContainer[];
  /** Added by `kubectl debug`; never changed or removed. */
  readonly ephemeralContainers?: readonly Ephemeral[];
  readonly activeDeadlineSeconds?: number;
  readonly tolerations?: readonly Toleration[];
}

export interface JsonOperation {
  readonly op: 'add' | 'replace' | 'remove' | 'test';
  readonly path: string;
  readonly value?: unknown;
}

/** Tolerations for the remote pod: ours is meaningless there, the VirtualNode's are added. */
export const remoteTolerations = (
  tolerations: readonly Toleration[] | undefined,
  patch: OffloadingPatch | undefined,
): Toleration[] => [
  ...(tolerations ?? []).filter((t) => t.key !== virtualNodeTaint.key),
  ...(patch?.tolerations ?? []),
];

function mutableContainer({ name, image, resources }: MutableContainer): MutableContainer {
  const { requests, limits } = resources ?? {};
  const sizes = { ...(requests ? { requests } : {}), ...(limits ? { limits } : {}) };
  return {
    name,
    ...(image === undefined ? {} : { image }),
    ...(Object.keys(sizes).length ? { resources: sizes } : {}),
  };
}

export function mutableSpec(spec: MutableSpec | PodSpec, patch?: OffloadingPatch): MutableSpec {
  const tolerations = remoteTolerations(spec.tolerations, patch);
  return {
    containers: spec.containers.map(mutableContainer),
    ...(spec.initContainers?.length ? { initContainers: spec.initContainers.map(mutableContainer) } : {}),
    ...(spec.ephemeralContainers?.length ? { ephemeralContainers: spec.ephemeralContainers } : {}),
    ...(spec.activeDeadlineSeconds === undefined ? {} : { activeDeadlineSeconds: spec.activeDeadlineSeconds }),
    ...(tolerations.length ? { tolerations } : {}),
  };
}

/** RFC 6902 operations on a ShadowPod. Containers are matched by position, which never changes, and guarded by name. */
export function mutableOperations(have: MutableSpec, want: MutableSpec): JsonOperation[] {
  return [
    ...containerOperations('containers', have.containers, want.containers),
    ...containerOperations('initContainers', have.initContainers ?? [], want.initContainers ?? []),
    ...memberOperations('activeDeadlineSeconds', have.activeDeadlineSeconds, want.activeDeadlineSeconds),
    ...memberOperations('tolerations', have.tolerations, want.tolerations),
    ...memberOperations('ephemeralContainers', have.ephemeralContainers, debugContainers(have, want)),
  ];
}

/** They are added and never changed or removed, also when others would be told something else now. */
function debugContainers(have: MutableSpec, want: MutableSpec): readonly Ephemeral[] | undefined {
  const present = have.ephemeralContainers ?? [];
  const missing = (want.ephemeralContainers ?? []).filter(({ name }) => !present.some((one) => one.name === name));
  return missing.length ? [...present, ...missing] : have.ephemeralContainers;
}

function containerOperations(
  list: string,
  have: readonly MutableContainer[],
  want: readonly MutableContainer[],
): JsonOperation[] {
  return have.flatMap(({ name, image, resources }, index): JsonOperation[] => {
    const wanted = want[index];
    if (wanted?.name !== name) return [];
    const at = `/spec/pod/${list}/${index}`;
    const changes: JsonOperation[] = [];
    if (wanted.image !== undefined && wanted.image !== image) {
      changes.push({ op: 'add', path: `${at}/image`, value: wanted.image });
    }
    if (!sameContent(resources ?? {}, wanted.resources ?? {})) {
      changes.push({ op: 'add', path: `${at}/resources`, value: wanted.resources ?? {} });
    }
    return changes.length ? [{ op: 'test', path: `${at}/name`, value: name }, ...changes] : [];
  });
}

function memberOperations(key: string, have: unknown, want: unknown): JsonOperation[] {
  if (sameContent(have, want)) return [];
  return [
    want === undefined
      ? { op: 'remove', path: `/spec/pod/${key}` }
      : { op: 'add', path: `/spec/pod/${key}`, value: want },
  ];
}
