/**
 * What the downward API tells an offloaded pod of itself: its namespace and UID are those of the pod that its users see, by which it finds itself at
 * their API server. The kubelet of the provider knows others.
 */
import type { Pod, PodSpec } from '#shared/domain/kube-object.ts';
import { isthmusAnnotation } from '#shared/domain/liqo-keys.ts';

type Container = PodSpec['containers'][number];
type Volume = NonNullable<PodSpec['volumes']>[number];
type Item = NonNullable<NonNullable<Volume['downwardAPI']>['items']>[number];

/** Annotations of the remote pod, by the fields that stand in them. */
const annotations: ReadonlyMap<string, string> = new Map([
  ['metadata.namespace', isthmusAnnotation.localNamespace],
  ['metadata.uid', isthmusAnnotation.localPodUid],
]);

export function ownFields({ metadata }: Pick<Pod, 'metadata'>): Record<string, string> {
  return {
    ...(metadata.namespace === undefined ? {} : { [isthmusAnnotation.localNamespace]: metadata.namespace }),
    ...(metadata.uid === undefined ? {} : { [isthmusAnnotation.localPodUid]: metadata.uid }),
  };
}

/** A file of a volume can only hold a field: that of the remote pod in which ours is written down. */
function itemOf(item: Item): Item {
  const annotation = annotations.get(item.fieldRef?.fieldPath ?? '');
  if (annotation === undefined) return item;
  return { ...item, fieldRef: { ...item.fieldRef, fieldPath: `metadata.annotations['${annotation}']` } };
}

function volumeOf(volume: Volume): Volume {
  const { downwardAPI, projected } = volume;
  if (downwardAPI?.items) return { ...volume, downwardAPI: { ...downwardAPI, items: downwardAPI.items.map(itemOf) } };
  if (!projected?.sources?.some((source) => source.downwardAPI?.items)) return volume;
  const sources = projected.sources.map((source) =>
    source.downwardAPI?.items
      ? { ...source, downwardAPI: { ...source.downwardAPI, items: source.downwardAPI.items.map(itemOf) } }
      : source,
  );
  return { ...volume, projected: { ...projected, sources } };
}

function containerOf(container: Container, own: Readonly<Record<string, string>>): Container {
  if (!container.env?.some(({ valueFrom }) => valueFrom?.fieldRef)) return container;
  const env = container.env.map((entry) => {
    const value = own[annotations.get(entry.valueFrom?.fieldRef?.fieldPath ?? '') ?? ''];
    return value === undefined ? entry : { name: entry.name, value };
  });
  return { ...container, env };
}

/** The members of a spec in which fields of the pod may be asked for. */
export function withOwnFields<T extends Partial<PodSpec>>(pod: Pick<Pod, 'metadata'>, spec: T): T {
  const own = ownFields(pod);
  return {
    ...spec,
    ...(spec.containers ? { containers: spec.containers.map((container) => containerOf(container, own)) } : {}),
    ...(spec.initContainers
      ? { initContainers: spec.initContainers.map((container) => containerOf(container, own)) }
      : {}),
    ...(spec.volumes ? { volumes: spec.volumes.map(volumeOf) } : {}),
  };
}
