/** What caches keep of pods on both sides: everything that `decide` reads, and nothing else. Transforms are pure and idempotent. */
import { tokenVolumes } from '#agent/reflection/model/api-access.ts';
import type { ObjectMeta, Pod, PodSpec } from '#shared/domain/kube-object.ts';
import { isthmusAnnotation, label } from '#shared/domain/liqo-keys.ts';
import type { ShadowPod } from '#shared/schema/liqo/shadow-pod.ts';
import { mutableSpec } from './mutable-spec.ts';

function pruneMetadata(metadata: ObjectMeta): ObjectMeta {
  const { managedFields: _, ...rest } = metadata as ObjectMeta & { managedFields?: unknown };
  return rest;
}

/**
 * A pod that has been offloaded will not be needed whole again (if it is, `apply` reads it), so only what may change stays of its spec. Before that,
 * the spec is kept: creating its ShadowPod then costs no extra read.
 */
export function pruneLocalPod(pod: Pod): Pod {
  const metadata = pruneMetadata(pod.metadata);
  const { spec } = pod;
  if (!spec || pod.metadata.labels?.[label.shadowPod] !== 'true') return { ...pod, metadata };
  const volumes = tokenVolumes(spec);
  const tokens = volumes.length ? { volumes } : {};
  const isTold = volumes.length > 0 || (spec.ephemeralContainers ?? []).length > 0;
  const account = isTold ? { serviceAccountName: spec.serviceAccountName } : {};
  const gates = spec.readinessGates?.length ? { readinessGates: spec.readinessGates } : {};
  const kept = { ...mutableSpec(spec), nodeName: spec.nodeName, ...tokens, ...account, ...gates } as PodSpec;
  return { ...pod, metadata, spec: kept };
}

export function pruneRemotePod(pod: Pod): Pod {
  const { name, namespace, uid, resourceVersion, labels, annotations, deletionTimestamp, ownerReferences } =
    pod.metadata;
  const metadata: ObjectMeta = {
    name,
    ...(namespace === undefined ? {} : { namespace }),
    ...(uid === undefined ? {} : { uid }),
    ...(resourceVersion === undefined ? {} : { resourceVersion }),
    ...(deletionTimestamp === undefined ? {} : { deletionTimestamp }),
    ...(ownerReferences === undefined ? {} : { ownerReferences }),
    ...(labels === undefined ? {} : { labels: only(labels, Object.values(label)) }),
    ...(annotations === undefined ? {} : { annotations: only(annotations, stamps) }),
  };
  return { apiVersion: pod.apiVersion, kind: pod.kind, metadata, ...(pod.status ? { status: pod.status } : {}) };
}

const stamps: readonly string[] = [isthmusAnnotation.localPodUid];
const only = (texts: Record<string, string>, keys: readonly string[]): Record<string, string> =>
  Object.fromEntries(Object.entries(texts).filter(([key]) => keys.includes(key)));

export const pruneShadowPod = (shadow: ShadowPod): ShadowPod => ({
  ...shadow,
  metadata: pruneMetadata(shadow.metadata),
  spec: { pod: mutableSpec(shadow.spec.pod) as unknown as PodSpec },
});
