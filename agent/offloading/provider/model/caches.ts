/** The shared caches of ShadowPods and of the pods made of them, reduced to what controller and admission read. */
import type { Cache, Caches, Transform } from '#kube/model/types.ts';
import { pods } from '#shared/domain/core-kinds.ts';
import type { Pod, PodSpec } from '#shared/domain/kube-object.ts';
import { label, managedByShadowPod } from '#shared/domain/liqo-keys.ts';
import { type ShadowPod, shadowPods } from '#shared/schema/liqo/shadow-pod.ts';

type Container = PodSpec['containers'][number];

const slimContainers = (containers: unknown): Container[] =>
  (Array.isArray(containers) ? (containers as Container[]) : []).map(({ name, image, resources, restartPolicy }) => ({
    name,
    ...(image !== undefined && { image }),
    ...(resources && { resources }),
    ...(restartPolicy !== undefined && { restartPolicy }),
  }));

/** What may change in a living pod, and what quota counts. */
function slimSpec(spec: PodSpec): PodSpec {
  const { activeDeadlineSeconds, tolerations, restartPolicy, overhead, resources, nodeName, ephemeralContainers } =
    spec;
  return {
    containers: slimContainers(spec.containers),
    ...(spec.initContainers && { initContainers: slimContainers(spec.initContainers) }),
    ...(activeDeadlineSeconds !== undefined && { activeDeadlineSeconds }),
    ...(tolerations && { tolerations }),
    ...(ephemeralContainers?.length && { ephemeralContainers }),
    ...(restartPolicy !== undefined && { restartPolicy }),
    ...(overhead && { overhead }),
    ...(resources && { resources }),
    ...(nodeName !== undefined && { nodeName }),
  };
}

/** Nothing has come of it yet: its pod is made from it, which needs all of it. */
export const isNew = ({ status }: ShadowPod): boolean => status?.phase === undefined && status?.reason === undefined;

const slimShadowPod: Transform<ShadowPod> = (shadow) => {
  const { apiVersion, kind, metadata, spec, status } = shadow;
  if (isNew(shadow) && spec?.pod?.containers) return shadow;
  const slim = { pod: slimSpec(spec?.pod ?? { containers: [] }) };
  return { apiVersion, kind, metadata, spec: slim, ...(status && { status }) };
};

const slimPod: Transform<Pod> = ({ apiVersion, kind, metadata, spec, status }) => ({
  apiVersion,
  kind,
  metadata,
  ...(spec && { spec: slimSpec(spec) }),
  ...(status?.phase !== undefined && { status: { phase: status.phase } }),
});

export const shadowPodCache = (caches: Caches): Cache<ShadowPod> =>
  caches.cache(shadowPods, { transform: slimShadowPod });

export const offloadedPodCache = (caches: Caches): Cache<Pod> =>
  caches.cache(pods, { labelSelector: `${label.managedBy}=${managedByShadowPod}`, transform: slimPod });
