/** The copy of a consumer's object in its tenant namespace at the provider. */
import type { KubeObject, ObjectMeta } from '#shared/domain/kube-object.ts';
import { annotation, isthmusAnnotation, label } from '#shared/domain/liqo-keys.ts';

/** A replicated kind, as far as replication looks into it. */
export type Replicated = KubeObject & { spec?: unknown; status?: unknown };

const droppedLabels: ReadonlySet<string> = new Set(['liqo.io/ownership', 'isthmus.dev/peering']);
/** The provider owns these on its copy; a consumer that wrote them would un-cordon itself. */
const providerAnnotations: ReadonlySet<string> = new Set([
  annotation.cordon,
  annotation.cordonTenant,
  isthmusAnnotation.drain,
]);
const localAnnotation = (key: string): boolean =>
  key.startsWith('kubectl.kubernetes.io/') || key === 'isthmus.dev/applied-hash';

function replicaLabels(original: ObjectMeta, consumer: string): Record<string, string> {
  const kept = Object.entries(original.labels ?? {}).filter(([key]) => !droppedLabels.has(key));
  return {
    ...Object.fromEntries(kept),
    [label.replication]: 'false',
    [label.replicated]: 'true',
    [label.originId]: consumer,
    [label.remoteClusterId]: consumer,
  };
}

const replicaAnnotations = (original: ObjectMeta): Record<string, string> =>
  Object.fromEntries(Object.entries(original.annotations ?? {}).filter(([key]) => !localAnnotation(key)));

export function buildReplica<T extends Replicated>(original: T, consumer: string, namespace: string): T {
  const { apiVersion, kind, metadata } = original;
  return {
    apiVersion,
    kind,
    metadata: {
      name: metadata.name,
      namespace,
      labels: replicaLabels(metadata, consumer),
      annotations: replicaAnnotations(metadata),
    },
    ...(original.spec === undefined ? {} : { spec: original.spec }),
  } as unknown as T;
}

/**
 * What the replica must be changed to: spec exactly as the original's, our labels and annotations present. What others added to its metadata
 * stays, and the annotations by which the provider cordons are the provider's alone.
 */
export function correctReplica<T extends Replicated>(replica: T, original: T, consumer: string): T {
  const annotations = Object.entries(replicaAnnotations(original.metadata)).filter(
    ([key]) => !providerAnnotations.has(key),
  );
  const corrected = {
    ...replica,
    metadata: {
      ...replica.metadata,
      labels: { ...replica.metadata.labels, ...replicaLabels(original.metadata, consumer) },
      annotations: { ...replica.metadata.annotations, ...Object.fromEntries(annotations) },
    },
  };
  return { ...corrected, spec: original.spec };
}
