/** Shapes the Pod that runs for a ShadowPod, and the changes that carry later edits over to it. */
import { isHomeAlias } from '#agent/reflection/model/api-access.ts';
import { apiVersionOf, type OwnerReference, type Pod } from '#shared/domain/kube-object.ts';
import { isthmusAnnotation, label, managedByShadowPod } from '#shared/domain/liqo-keys.ts';
import { amountsOf } from '#shared/domain/pod-resources.ts';
import { type ShadowPod, shadowPods } from '#shared/schema/liqo/shadow-pod.ts';

type Texts = Record<string, string>;
type Spec = NonNullable<Pod['spec']>;
export type JsonPatch = readonly { readonly op: string; readonly path: string; readonly value?: unknown }[];

/** Never carried over: it would make `kubectl apply` of the pod compare with another object. */
const lastApplied = 'kubectl.kubernetes.io/last-applied-configuration';

const ownerOf = ({ metadata }: ShadowPod): OwnerReference => ({
  apiVersion: apiVersionOf(shadowPods),
  kind: shadowPods.kind,
  name: metadata.name,
  uid: metadata.uid ?? '',
  controller: true,
  blockOwnerDeletion: true,
});

interface Carried {
  readonly labels: Texts;
  readonly annotations: Texts;
}

function carried({ metadata }: ShadowPod): Carried {
  const { [lastApplied]: _, [isthmusAnnotation.propagated]: __, ...annotations } = metadata.annotations ?? {};
  const labels = { ...metadata.labels, [label.managedBy]: managedByShadowPod };
  const keys = { labels: Object.keys(labels).sort(), annotations: Object.keys(annotations).sort() };
  return { labels, annotations: { ...annotations, [isthmusAnnotation.propagated]: JSON.stringify(keys) } };
}

/** A new pod may not have ephemeral containers; they follow once it is there. */
function startable({ ephemeralContainers: _, ...spec }: Spec): Spec {
  return spec;
}

/** The consumer's API server has another address here than there. */
function aliasesHere(spec: Spec, here: (address: string) => string): Pick<Spec, 'hostAliases'> {
  if (!spec.hostAliases) return {};
  return {
    hostAliases: spec.hostAliases.map((alias) => (isHomeAlias(alias) ? { ...alias, ip: here(alias.ip) } : alias)),
  };
}

/**
 * `shadow` is the whole object, not the reduced one of the cache, with its spec as the rules for guests have it. `here`: what this cluster calls an
 * address that the consumer exports.
 */
export const podOf = (shadow: ShadowPod, here: (address: string) => string = (address) => address): Pod => ({
  apiVersion: 'v1',
  kind: 'Pod',
  metadata: {
    name: shadow.metadata.name,
    ...(shadow.metadata.namespace !== undefined && { namespace: shadow.metadata.namespace }),
    ...carried(shadow),
    ownerReferences: [ownerOf(shadow)],
  },
  spec: { ...startable(shadow.spec.pod), ...aliasesHere(shadow.spec.pod, here) },
});

/** Keys that came from the ShadowPod at the last writing and need not do so any more. */
function recorded(pod: Pod, wanted: Carried): { labels: string[]; annotations: string[] } {
  const none = { labels: [], annotations: [] };
  const record = pod.metadata.annotations?.[isthmusAnnotation.propagated];
  if (record === wanted.annotations[isthmusAnnotation.propagated]) return none;
  try {
    return { ...none, ...JSON.parse(record ?? '{}') };
  } catch {
    return none;
  }
}

/** Undefined: labels and annotations are as they should be. What others added to the pod stays. */
export function metadataPatch(shadow: ShadowPod, pod: Pod): { metadata: Record<string, unknown> } | undefined {
  const wanted = carried(shadow);
  const before = recorded(pod, wanted);
  const labels = changes(pod.metadata.labels ?? {}, wanted.labels, before.labels);
  const annotations = changes(pod.metadata.annotations ?? {}, wanted.annotations, before.annotations);
  if (!labels && !annotations) return undefined;
  return { metadata: { uid: pod.metadata.uid, ...(labels && { labels }), ...(annotations && { annotations }) } };
}

function changes(have: Texts, want: Texts, before: readonly string[]): Record<string, string | null> | undefined {
  const set = Object.entries(want).filter(([key, value]) => have[key] !== value);
  const drop = before.filter((key) => !(key in want) && key in have);
  if (set.length === 0 && drop.length === 0) return undefined;
  return { ...Object.fromEntries(set), ...Object.fromEntries(drop.map((key) => [key, null])) };
}

/** Carries over what the API lets change in a living pod: images, more tolerations, a (shorter) deadline. Empty: nothing to do. */
export function specPatch(shadow: ShadowPod, pod: Pod): JsonPatch {
  const want = shadow.spec.pod;
  const have: Spec = pod.spec ?? { containers: [] };
  const operations = [
    ...imageChanges('containers', want.containers, have.containers),
    ...imageChanges('initContainers', want.initContainers, have.initContainers),
    ...newTolerations(want.tolerations, have.tolerations),
    ...(want.activeDeadlineSeconds !== undefined && want.activeDeadlineSeconds !== have.activeDeadlineSeconds
      ? [{ op: 'add', path: '/spec/activeDeadlineSeconds', value: want.activeDeadlineSeconds }]
      : []),
  ];
  return operations.length === 0 ? [] : [{ op: 'test', path: '/metadata/uid', value: pod.metadata.uid }, ...operations];
}

/** By name: injectors may have put containers of their own in between. Indexes are stable, as pods never gain or lose containers. */
function imageChanges(list: string, want: Spec['containers'] = [], have: Spec['containers'] = []): JsonPatch {
  return want.flatMap(({ name, image }) => {
    const index = have.findIndex((container) => container.name === name);
    if (index < 0 || image === undefined || have[index]?.image === image) return [];
    return [{ op: 'replace', path: `/spec/${list}/${index}/image`, value: image }];
  });
}

/** Compared field by field: the API server writes absent members as empty or leaves them out. */
function newTolerations(want: Spec['tolerations'] = [], have: Spec['tolerations'] = []): JsonPatch {
  const same = (a: (typeof want)[number]): string =>
    [a.key ?? '', a.operator ?? 'Equal', a.value ?? '', a.effect ?? '', a.tolerationSeconds ?? ''].join('|');
  const known = new Set(have.map(same));
  const missing = want.filter((toleration) => !known.has(same(toleration)));
  if (missing.length === 0) return [];
  if (have.length === 0) return [{ op: 'add', path: '/spec/tolerations', value: missing }];
  // From a cache that lags, the same would be added twice, for good: tolerations of a pod cannot be removed.
  return [
    { op: 'test', path: '/spec/tolerations', value: have },
    ...missing.map((value) => ({ op: 'add', path: '/spec/tolerations/-', value })),
  ];
}

type Resources = NonNullable<Spec['containers'][number]['resources']>;
const resizable = ['cpu', 'memory'];

/** Compared by amount: `1000m` is `1`. What is not asked for was filled in by the API server and is not ours to take away. */
function resized(want: Resources | undefined, have: Resources | undefined): Resources | undefined {
  const differs = (['requests', 'limits'] as const).some((list) => {
    const changed = resizable.filter(
      (resource) => want?.[list]?.[resource] !== undefined && want[list][resource] !== have?.[list]?.[resource],
    );
    if (changed.length === 0) return false;
    const [wanted, had] = [amountsOf(want?.[list]), amountsOf(have?.[list])];
    return changed.some((resource) => wanted[resource] !== had[resource]);
  });
  if (!differs) return undefined;
  return {
    ...(want?.requests || have?.requests ? { requests: { ...have?.requests, ...want?.requests } } : {}),
    ...(want?.limits || have?.limits ? { limits: { ...have?.limits, ...want?.limits } } : {}),
  };
}

/** For the subresource `resize`. Empty: every container has the cpu and memory that is asked for. */
export function resizePatch(shadow: ShadowPod, pod: Pod): JsonPatch {
  const operations = (['containers', 'initContainers'] as const).flatMap((list) =>
    (shadow.spec.pod[list] ?? []).flatMap(({ name, resources }) => {
      const index = (pod.spec?.[list] ?? []).findIndex((container) => container.name === name);
      const wanted = index < 0 ? undefined : resized(resources, pod.spec?.[list]?.[index]?.resources);
      return wanted ? [{ op: 'add', path: `/spec/${list}/${index}/resources`, value: wanted }] : [];
    }),
  );
  return operations.length === 0 ? [] : [{ op: 'test', path: '/metadata/uid', value: pod.metadata.uid }, ...operations];
}

/** For the subresource `ephemeralcontainers`. By name; those added at the provider stay. */
export function debugPatch(shadow: ShadowPod, pod: Pod): JsonPatch {
  const have = pod.spec?.ephemeralContainers ?? [];
  const missing = (shadow.spec.pod.ephemeralContainers ?? []).filter(
    ({ name }) => !have.some((container) => container.name === name),
  );
  if (missing.length === 0) return [];
  return [
    { op: 'test', path: '/metadata/uid', value: pod.metadata.uid },
    { op: 'add', path: '/spec/ephemeralContainers', value: [...have, ...missing] },
  ];
}
