/** What the reflection engine has to know about one kind of object that is reflected from the consumer to the provider. */
import type { Service } from '#shared/domain/core-kinds.ts';
import type { KubeObject, ResourceType } from '#shared/domain/kube-object.ts';

/** Keys of `reflectorsConfig` (docs/design/offloading.md#which-kinds-are-reflected) that are reflected here. */
export type ReflectorName =
  | 'service'
  | 'endpointslice'
  | 'ingress'
  | 'configmap'
  | 'secret'
  | 'serviceaccount'
  | 'event';

export interface Pair {
  readonly consumer: string;
  readonly provider: string;
}

/** What a VirtualNode and its options say about the shape of reflected objects. */
export interface Shape {
  /** Exact keys. */
  readonly labelsNotReflected: readonly string[];
  readonly annotationsNotReflected: readonly string[];
  /** Of the provider; undefined: its own default applies. */
  readonly ingressClass?: string | undefined;
  readonly loadBalancerClass?: string | undefined;
}

/** `provider`: the cluster ID that a virtual node stands for. */
export type NodeKind = { readonly is: 'physical' | 'unknown' } | { readonly is: 'virtual'; readonly provider: string };

/** What is known of the cluster around an object, as far as a kind needs it. */
export interface ClusterFacts {
  node(name: string): NodeKind;
  /** The address to tell the provider, by which it can work out its own; undefined while there is none. */
  exported(namespace: string, address: string): string | undefined;
  /** What the pod of another provider, known here by `address`, is called over there. */
  atHome(provider: string, address: string): string;
  service(namespace: string, name: string): Service | undefined;
}

export interface Context extends Pair {
  readonly shape: Shape;
  readonly around: ClusterFacts;
}

/** All of an object but its metadata and type. */
export type Content = Readonly<Record<string, unknown>>;

/** What the copy at the provider shall contain, or why it cannot be made, for the user. */
export type CopyContent =
  | {
      readonly content: Content;
      /** Added to what the local object has. */
      readonly labels?: Readonly<Record<string, string>>;
      readonly annotations?: Readonly<Record<string, string>>;
      /** More keys of the local object that mean nothing there. */
      readonly without?: readonly string[];
    }
  | { readonly refused: string }
  /** Something that makes itself is missing, usually for a moment. */
  | { readonly awaits: string };

/** `L` here, `R` at the provider. All functions are pure. */
export interface OutgoingKind<L extends KubeObject = KubeObject, R extends KubeObject = L> {
  readonly name: ReflectorName;
  readonly local: ResourceType<L>;
  readonly remote: ResourceType<R>;
  /** Drops, on both sides, what is never compared; idempotent. */
  readonly prune: (object: L | R) => L | R;
  /** True when `prune` drops what `copy` needs: the whole object is read again before it is written. */
  readonly isPartial: boolean;
  /** Of the caches here; what else may make an object worth a look. */
  readonly indexes?: Readonly<Record<string, (local: L) => readonly string[]>>;
  readonly remoteName: (name: string, consumer: string) => string;
  readonly localName: (name: string, consumer: string) => string;
  /** Never reflected, under any policy. */
  readonly isExcluded: (local: L, consumer: string) => boolean;
  readonly copy: (local: L, context: Context) => CopyContent;
  /** True when the API server would refuse to turn one into the other. */
  readonly mustReplace: (have: R, want: Content) => boolean;
}

/** Erases the types, so that kinds fit in one list. */
export const outgoing = <L extends KubeObject, R extends KubeObject>(kind: OutgoingKind<L, R>): OutgoingKind =>
  kind as unknown as OutgoingKind;

export const sameName = { remoteName: (name: string): string => name, localName: (name: string): string => name };

export const withoutStatus = <T extends KubeObject>(object: T): T => {
  const { status: _, ...rest } = object as T & { status?: unknown };
  return rest as unknown as T;
};

/** Of `from`, those members that are present. */
export function picked<T extends object, K extends keyof T>(from: T | undefined, keys: readonly K[]): Partial<T> {
  const present = keys
    .filter((key) => from?.[key] !== undefined && from[key] !== null)
    .map((key) => [key, from?.[key]]);
  return Object.fromEntries(present) as Partial<T>;
}
