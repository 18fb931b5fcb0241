/**
 * How an offloaded pod reaches an API server (docs/design/offloading.md#how-does-an-offloaded-pod-reach-an-api-server): that of its own cluster with tokens that we keep fresh
 * (`token`), that of the provider with an account there (`remote`), or none (`disabled`).
 */
import { createHash } from 'node:crypto';
import type { Pod, PodSpec } from '#shared/domain/kube-object.ts';
import { annotation } from '#shared/domain/liqo-keys.ts';

type Container = PodSpec['containers'][number];
type Volume = NonNullable<PodSpec['volumes']>[number];
type Source = NonNullable<NonNullable<Volume['projected']>['sources']>[number];

export type ApiAccess = 'token' | 'remote' | 'disabled';

/** The API server of this cluster as its pods know it. Absent: its use from the provider is switched off. */
export interface HomeApi {
  readonly port: number;
  /** By which the provider's pods reach it through the link, as this cluster exports them. */
  readonly addresses: readonly string[];
}

export const rootCa = 'kube-root-ca.crt';

/** A prefix may end where a name must not. */
export function reflectedRootCa(consumer: string): string {
  const text = `${rootCa}.${consumer.slice(0, 5)}`;
  return /[a-z0-9]$/i.test(text) ? text : `${text}a`;
}

/** Unknown values of the annotation mean nothing. */
export function apiAccessOf(pod: Pick<Pod, 'metadata'>, home: HomeApi | undefined): ApiAccess {
  const asked = pod.metadata.annotations?.[annotation.apiServerSupport]?.toLowerCase();
  if (asked === 'remote') return 'remote';
  return asked === 'disabled' || !home ? 'disabled' : 'token';
}

const longestName = 253;
export const tokenSecretName = (pod: string): string => `${pod.slice(0, longestName - '-token'.length)}-token`;

export const tokenKey = (volume: string, path: string): string =>
  `${volume}-${createHash('sha256').update(path).digest('hex').slice(0, 6)}`;

export interface TokenRequest {
  readonly key: string;
  readonly audience?: string;
  readonly seconds: number;
}

const defaultSeconds = 3600;

/** The tokens that the pod's volumes ask for. */
export const tokenRequests = (spec: Pick<PodSpec, 'volumes'> | undefined): TokenRequest[] =>
  (spec?.volumes ?? []).flatMap((volume) =>
    (volume.projected?.sources ?? []).flatMap(({ serviceAccountToken: token }) =>
      token
        ? [
            {
              key: tokenKey(volume.name, token.path),
              seconds: token.expirationSeconds ?? defaultSeconds,
              ...(token.audience ? { audience: token.audience } : {}),
            },
          ]
        : [],
    ),
  );

/** Only what `tokenRequests` reads. */
export const tokenVolumes = (spec: Pick<PodSpec, 'volumes'>): Volume[] =>
  (spec.volumes ?? []).flatMap(({ name, projected }) => {
    const sources = (projected?.sources ?? []).flatMap(({ serviceAccountToken }) =>
      serviceAccountToken ? [{ serviceAccountToken }] : [],
    );
    return sources.length ? [{ name, projected: { sources } }] : [];
  });

function sourceOf(source: Source, volume: string, pod: string, access: ApiAccess, consumer: string): Source[] {
  const { serviceAccountToken: token, configMap } = source;
  if (token) {
    if (access === 'disabled') return [];
    return [
      { secret: { name: tokenSecretName(pod), items: [{ key: tokenKey(volume, token.path), path: token.path }] } },
    ];
  }
  if (configMap?.name !== rootCa) return [source];
  // A pod that needs no token does not wait for the Secret.
  const optional = access === 'disabled' ? { optional: true } : {};
  return [{ configMap: { ...configMap, name: reflectedRootCa(consumer), ...optional } }];
}

/** A projected volume stays one: its mounts must stay valid even when nothing is left in it. */
function volumeOf(volume: Volume, pod: string, access: ApiAccess, consumer: string): Volume {
  if (volume.configMap?.name === rootCa) {
    return { ...volume, configMap: { ...volume.configMap, name: reflectedRootCa(consumer) } };
  }
  const sources = volume.projected?.sources;
  if (!sources) return volume;
  const kept = sources.flatMap((source) => sourceOf(source, volume.name, pod, access, consumer));
  if (kept.length === 0) return { name: volume.name, emptyDir: {} };
  return { ...volume, projected: { ...volume.projected, sources: kept } };
}

const host = 'kubernetes.default';
const aliases = [host, `${host}.svc`];

function homeEnvironment(port: number): Record<string, string> {
  const url = `tcp://${host}:${port}`;
  return {
    KUBERNETES_SERVICE_HOST: host,
    KUBERNETES_SERVICE_PORT: `${port}`,
    KUBERNETES_PORT: url,
    [`KUBERNETES_PORT_${port}_TCP`]: url,
    [`KUBERNETES_PORT_${port}_TCP_PROTO`]: 'tcp',
    [`KUBERNETES_PORT_${port}_TCP_ADDR`]: host,
    [`KUBERNETES_PORT_${port}_TCP_PORT`]: `${port}`,
  };
}

/** What the container sets itself wins. */
function containerOf(container: Container, added: Readonly<Record<string, string>>, account: string): Container {
  const own = (container.env ?? []).map((entry) =>
    entry.valueFrom?.fieldRef?.fieldPath === 'spec.serviceAccountName' ? { name: entry.name, value: account } : entry,
  );
  const taken = new Set(own.map(({ name }) => name));
  const more = Object.entries(added).flatMap(([name, value]) => (taken.has(name) ? [] : [{ name, value }]));
  const env = [...own, ...more];
  return env.length ? { ...container, env } : container;
}

export interface ApiAccessInput {
  readonly pod: Pod;
  readonly consumer: string;
  readonly home?: HomeApi | undefined;
}

/** The members of a remote pod's spec that depend on how it reaches an API server. */
export function accessSpec({ pod, consumer, home }: ApiAccessInput, spec: PodSpec): Partial<PodSpec> {
  const access = apiAccessOf(pod, home);
  if (access === 'remote') {
    const account = pod.metadata.annotations?.[annotation.remoteServiceAccountName] ?? spec.serviceAccountName;
    return {
      containers: spec.containers,
      ...(spec.initContainers ? { initContainers: spec.initContainers } : {}),
      ...(spec.volumes?.length ? { volumes: spec.volumes } : {}),
      ...(account === undefined ? {} : { serviceAccountName: account }),
      automountServiceAccountToken: true,
    };
  }
  const added = access === 'token' && home ? homeEnvironment(home.port) : {};
  const account = spec.serviceAccountName ?? 'default';
  const volumes = (spec.volumes ?? []).map((volume) => volumeOf(volume, pod.metadata.name, access, consumer));
  const reachable = access === 'token' ? (home?.addresses ?? []) : [];
  const hostAliases = [...(spec.hostAliases ?? []), ...reachable.map((ip) => ({ ip, hostnames: aliases }))];
  return {
    containers: spec.containers.map((container) => containerOf(container, added, account)),
    ...(spec.initContainers
      ? { initContainers: spec.initContainers.map((container) => containerOf(container, added, account)) }
      : {}),
    ...(volumes.length ? { volumes } : {}),
    ...(hostAliases.length ? { hostAliases } : {}),
    automountServiceAccountToken: false,
  };
}

/** Whether this host alias stands for the consumer's API server, so that its address is one that the consumer exports. */
export const isHomeAlias = ({ hostnames }: { readonly hostnames?: readonly string[] }): boolean =>
  hostnames?.includes(host) ?? false;
