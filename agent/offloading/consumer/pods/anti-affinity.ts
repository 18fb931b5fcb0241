/** The pod anti-affinity that annotation `liqo.io/anti-affinity-preset` asks for at the provider. */
import type { Pod, PodSpec } from '#shared/domain/kube-object.ts';

type PodAntiAffinity = NonNullable<NonNullable<PodSpec['affinity']>['podAntiAffinity']>;

/** Labels that differ between generations or replicas of one workload, and so would never match a sibling. */
const perReplica = new Set([
  'controller-revision-hash',
  'pod-template-hash',
  'statefulset.kubernetes.io/pod-name',
  'apps.kubernetes.io/pod-index',
]);

function chosen(labels: Readonly<Record<string, string>>, keys: string | undefined): Record<string, string> {
  const wanted = keys?.split(',').map((key) => key.trim());
  return Object.fromEntries(
    Object.entries(labels).filter(([key]) => (wanted ? wanted.includes(key) : !perReplica.has(key))),
  );
}

/** `labels`: those of the remote pod. Undefined: no preset, or one that is not known. */
export function podAntiAffinityOf(pod: Pod, labels: Readonly<Record<string, string>>): PodAntiAffinity | undefined {
  const preset = pod.metadata.annotations?.['liqo.io/anti-affinity-preset'];
  if (preset === 'propagate') return pod.spec?.affinity?.podAntiAffinity;
  if (preset !== 'soft' && preset !== 'hard') return undefined;
  const term = {
    topologyKey: 'kubernetes.io/hostname',
    labelSelector: { matchLabels: chosen(labels, pod.metadata.annotations?.['liqo.io/anti-affinity-labels']) },
  };
  return preset === 'hard'
    ? { requiredDuringSchedulingIgnoredDuringExecution: [term] }
    : { preferredDuringSchedulingIgnoredDuringExecution: [{ weight: 1, podAffinityTerm: term }] };
}
