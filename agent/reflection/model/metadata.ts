/**
 * Labels and annotations of reflected objects, and the owner of an object at the provider
 * (docs/design/offloading.md#whose-is-an-object-at-the-provider). Pure.
 */
import type { KubeObject, ObjectMeta } from '#shared/domain/kube-object.ts';
import { isthmusAnnotation, label } from '#shared/domain/liqo-keys.ts';
import type { CopyContent, Pair, Shape } from '../kinds/kind.ts';
import { fingerprint } from './digests.ts';

type Texts = Readonly<Record<string, string>>;
type Wanted = Exclude<CopyContent, { readonly refused: string } | { readonly awaits: string }>;

/** kubectl's copy of the whole object, Secrets included. */
export const lastApplied = 'kubectl.kubernetes.io/last-applied-configuration';
/** What we say on objects about their place between clusters; each cluster says its own. */
const ownLabels: readonly string[] = [label.origin, label.destination, label.nodeName, label.managedBy];

export const isOurs = ({ metadata }: Pick<KubeObject, 'metadata'>, { consumer, provider }: Pair): boolean =>
  metadata.labels?.[label.origin] === consumer && metadata.labels[label.destination] === provider;

export const pairLabels = ({ consumer, provider }: Pair): Record<string, string> => ({
  [label.origin]: consumer,
  [label.destination]: provider,
});

export function without(texts: Texts | undefined, ...dropped: readonly (readonly string[])[]): Record<string, string> {
  const keys = new Set(dropped.flat());
  return Object.fromEntries(Object.entries(texts ?? {}).filter(([key]) => !keys.has(key)));
}

export interface CopyObject extends KubeObject {
  readonly [member: string]: unknown;
}

/** `metadata` is that of the local object. The fingerprint tells later whether anything that we once wrote is no longer wanted. */
export function buildCopy(
  type: Pick<KubeObject, 'apiVersion' | 'kind'>,
  at: { readonly name: string; readonly namespace: string },
  { metadata }: { readonly metadata: ObjectMeta },
  copy: Wanted,
  shape: Shape,
  pair: Pair,
): CopyObject {
  const labels = {
    ...without(metadata.labels, ownLabels, shape.labelsNotReflected, copy.without ?? []),
    ...copy.labels,
    ...pairLabels(pair),
  };
  const annotations = {
    ...without(
      metadata.annotations,
      [lastApplied, isthmusAnnotation.reflected],
      shape.annotationsNotReflected,
      copy.without ?? [],
    ),
    ...copy.annotations,
  };
  return {
    ...type,
    metadata: { ...at, labels, annotations },
    ...copy.content,
  };
}

export const stamped = (object: CopyObject, fingerprint: string): CopyObject => ({
  ...object,
  metadata: {
    ...object.metadata,
    annotations: { ...object.metadata.annotations, [isthmusAnnotation.reflected]: fingerprint },
  },
});

export const fingerprintOf = ({ metadata, ...rest }: CopyObject): string =>
  fingerprint({ ...rest, labels: metadata.labels, annotations: metadata.annotations });

/** What the cache keeps of an object at the provider that has a foreign owner: that it exists. */
export function foreignOwner<T extends KubeObject>({ apiVersion, kind, metadata }: T): T {
  const { name, namespace, uid, resourceVersion } = metadata;
  return { apiVersion, kind, metadata: { name, namespace, uid, resourceVersion } } as T;
}

/** Without what is never compared. */
export function pruneMetadata<T extends KubeObject>(object: T): T {
  const { ownerReferences: _, finalizers: __, generateName: ___, annotations, ...metadata } = object.metadata;
  return {
    ...object,
    metadata: { ...metadata, ...(annotations ? { annotations: without(annotations, [lastApplied]) } : {}) },
  };
}
