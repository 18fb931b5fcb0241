/** Turns a local pod into the ShadowPod that stands for it at the provider (docs/design/offloading.md#what-does-a-shadowpod-take-over). */
import { accessSpec, apiAccessOf, type HomeApi } from '#agent/reflection/model/api-access.ts';
import type { Pod, PodSpec } from '#shared/domain/kube-object.ts';
import { annotation, isthmusAnnotation, label } from '#shared/domain/liqo-keys.ts';
import type { ShadowPod } from '#shared/schema/liqo/shadow-pod.ts';
import type { OffloadingPatch } from '#shared/schema/liqo/virtual-node.ts';
import { podAntiAffinityOf } from './anti-affinity.ts';
import { remoteTolerations } from './mutable-spec.ts';
import { ownFields, withOwnFields } from './own-fields.ts';
import { withRemoteNames } from './remote-volumes.ts';

type Texts = Readonly<Record<string, string>>;
type Ephemeral = NonNullable<PodSpec['ephemeralContainers']>[number];

export interface ShadowPodInput {
  readonly pod: Pod;
  readonly remoteNamespace: string;
  readonly consumer: string;
  readonly provider: string;
  readonly nodeName: string;
  readonly patch?: OffloadingPatch | undefined;
  readonly home?: HomeApi | undefined;
  /** What its claims are called at the provider, by names of volumes. */
  readonly claims?: ReadonlyMap<string, string> | undefined;
}

/** The labels and annotations that a ShadowPod must have; those that the provider adds (creator) are not ours to judge. */
export interface ShadowMetadata {
  readonly labels: Record<string, string>;
  readonly annotations: Record<string, string>;
}

const stateOfOurs: ReadonlySet<string> = new Set([label.shadowPod, label.remoteUnavailable]);

function without(texts: Texts | undefined, keys: Iterable<string>): Record<string, string> {
  const dropped = new Set(keys);
  return Object.fromEntries(Object.entries(texts ?? {}).filter(([key]) => !dropped.has(key)));
}

export function shadowMetadata({ pod, consumer, provider, nodeName, patch }: ShadowPodInput): ShadowMetadata {
  return {
    labels: {
      ...without(pod.metadata.labels, [...stateOfOurs, ...(patch?.labelsNotReflected ?? [])]),
      [label.nodeName]: nodeName,
      [label.origin]: consumer,
      [label.destination]: provider,
    },
    annotations: {
      ...without(pod.metadata.annotations, [isthmusAnnotation.remotePod, ...(patch?.annotationsNotReflected ?? [])]),
      ...ownFields(pod),
    },
  };
}

const copied = [
  'activeDeadlineSeconds',
  'dnsConfig',
  'dnsPolicy',
  'enableServiceLinks',
  'hostAliases',
  'hostUsers',
  'hostname',
  'imagePullSecrets',
  'os',
  'resources',
  'restartPolicy',
  'securityContext',
  'setHostnameAsFQDN',
  'shareProcessNamespace',
  'subdomain',
  'terminationGracePeriodSeconds',
  'topologySpreadConstraints',
] as const satisfies readonly (keyof PodSpec)[];

function copyOf(spec: PodSpec): Partial<PodSpec> {
  const present = copied.filter((key) => spec[key] !== undefined).map((key) => [key, spec[key]]);
  return Object.fromEntries(present) as Partial<PodSpec>;
}

/** Annotation, then the pod's own class unless it only means "run on a virtual node", then the VirtualNode's. */
function runtimeClassOf(pod: Pod, patch: OffloadingPatch | undefined): string | undefined {
  const asked = pod.metadata.annotations?.[annotation.remoteRuntimeClassName];
  return [asked, pod.spec?.runtimeClassName, patch?.runtimeClassName].find((name) => name && name !== 'liqo');
}

function affinityOf(input: ShadowPodInput, labels: Texts): PodSpec['affinity'] | undefined {
  const nodeAffinity = input.patch?.affinity?.nodeAffinity;
  const podAntiAffinity = podAntiAffinityOf(input.pod, labels);
  if (!nodeAffinity && !podAntiAffinity) return undefined;
  return { ...(nodeAffinity ? { nodeAffinity } : {}), ...(podAntiAffinity ? { podAntiAffinity } : {}) };
}

function accessOf(input: Pick<ShadowPodInput, 'pod' | 'consumer' | 'home'>, spec: PodSpec): Partial<PodSpec> {
  const access = accessSpec(input, spec);
  return apiAccessOf(input.pod, input.home) === 'remote' ? access : withOwnFields(input.pod, access);
}

/** Of `kubectl debug`, as the ShadowPod gets them: they are told of the pod what its other containers are told. A pruned pod will do. */
export function debugContainersOf(input: Pick<ShadowPodInput, 'pod' | 'consumer' | 'home'>): Ephemeral[] {
  const { ephemeralContainers = [], serviceAccountName } = input.pod.spec ?? {};
  if (ephemeralContainers.length === 0) return [];
  const spec = { containers: ephemeralContainers, serviceAccountName } as PodSpec;
  return (accessOf(input, spec).containers ?? []) as Ephemeral[];
}

/** `pod` must have its whole spec: a pruned one from a cache gives a ShadowPod that cannot run. */
export function shadowPod(input: ShadowPodInput): ShadowPod {
  const { pod, patch } = input;
  const spec = pod.spec;
  if (!spec) throw new TypeError(`pod ${pod.metadata.namespace}/${pod.metadata.name} has no spec`);
  const metadata = shadowMetadata(input);
  const tolerations = remoteTolerations(spec.tolerations, patch);
  const affinity = affinityOf(input, metadata.labels);
  const runtimeClassName = runtimeClassOf(pod, patch);
  const access = accessOf(input, spec);
  const remote = {
    ...copyOf(spec),
    ...access,
    ...(access.volumes && input.claims?.size ? { volumes: withRemoteNames(access.volumes, input.claims) } : {}),
    hostIPC: false,
    hostNetwork: false,
    hostPID: false,
    ...(tolerations.length ? { tolerations } : {}),
    ...(patch?.nodeSelector && Object.keys(patch.nodeSelector).length
      ? { nodeSelector: { ...patch.nodeSelector } }
      : {}),
    ...(affinity ? { affinity } : {}),
    ...(runtimeClassName ? { runtimeClassName } : {}),
  } as PodSpec;
  return {
    apiVersion: 'offloading.liqo.io/v1beta1',
    kind: 'ShadowPod',
    metadata: { name: pod.metadata.name, namespace: input.remoteNamespace, ...metadata },
    spec: { pod: remote },
  } as ShadowPod;
}
