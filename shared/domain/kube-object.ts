/** The shapes every Kubernetes object has, and the type-level handle (`ResourceType`) by which ports name a kind. */
import type {
  V1ConfigMap,
  V1Lease,
  V1Namespace,
  V1Node,
  V1NodeSelector,
  V1Pod,
  V1PodSpec,
  V1PodStatus,
  V1RoleBinding,
  V1Secret,
} from '@kubernetes/client-node';

/** The JSON form of a client-node model: dates are RFC 3339 strings on the wire, and any member may be absent. */
export type Wire<T> = T extends Date
  ? string
  : T extends readonly (infer U)[]
    ? Wire<U>[]
    : T extends object
      ? { [K in keyof T]: Wire<T[K]> }
      : T;

export interface OwnerReference {
  readonly apiVersion: string;
  readonly kind: string;
  readonly name: string;
  readonly uid: string;
  readonly controller?: boolean;
  readonly blockOwnerDeletion?: boolean;
}

/** `metadata` as the API server sends it. */
export interface ObjectMeta {
  name: string;
  namespace?: string;
  generateName?: string;
  uid?: string;
  resourceVersion?: string;
  generation?: number;
  creationTimestamp?: string;
  deletionTimestamp?: string;
  deletionGracePeriodSeconds?: number;
  labels?: Record<string, string>;
  annotations?: Record<string, string>;
  finalizers?: string[];
  ownerReferences?: OwnerReference[];
}

export interface KubeObject {
  apiVersion: string;
  kind: string;
  metadata: ObjectMeta;
}

/** An object whose spec and status are typed. */
export interface KubeResource<Spec, Status = never> extends KubeObject {
  spec: Spec;
  status?: Status;
}

/** Where an object is. `namespace` is absent for cluster-scoped kinds. */
export interface ObjectRef {
  readonly namespace?: string;
  readonly name: string;
}

/** Names a kind to a port; `T` is the object's type and exists only for the compiler. */
export interface ResourceType<T extends KubeObject = KubeObject> {
  /** '' for the core group. */
  readonly group: string;
  readonly version: string;
  readonly kind: string;
  readonly plural: string;
  readonly namespaced: boolean;
  readonly __object?: T;
}

/** `v1` or `group/version`. */
export const apiVersionOf = (type: ResourceType): string =>
  type.group === '' ? type.version : `${type.group}/${type.version}`;

export const refOf = (object: KubeObject): ObjectRef =>
  object.metadata.namespace === undefined
    ? { name: object.metadata.name }
    : { namespace: object.metadata.namespace, name: object.metadata.name };

/** `namespace/name`, or `name` for cluster-scoped objects: the form of every work-queue key. */
export const keyOf = (object: KubeObject): string =>
  object.metadata.namespace ? `${object.metadata.namespace}/${object.metadata.name}` : object.metadata.name;

/** The inverse of `keyOf`. */
export function refOfKey(key: string): ObjectRef {
  const slash = key.indexOf('/');
  return slash < 0 ? { name: key } : { namespace: key.slice(0, slash), name: key.slice(slash + 1) };
}

/** Of a key that `keyOf` made; empty for cluster-scoped kinds. */
export const namespaceOfKey = (key: string): string => refOfKey(key).namespace ?? '';

type Meta<T> = Omit<T, 'metadata' | 'apiVersion' | 'kind'> & KubeObject;
export type Pod = Meta<Wire<V1Pod>>;
export type PodSpec = Wire<V1PodSpec>;
export type PodStatus = Wire<V1PodStatus>;
export type Node = Meta<Wire<V1Node>>;
export type Namespace = Meta<Wire<V1Namespace>>;
export type Secret = Meta<Wire<V1Secret>>;
export type ConfigMap = Meta<Wire<V1ConfigMap>>;
export type Lease = Meta<Wire<V1Lease>>;
export type RoleBinding = Meta<Wire<V1RoleBinding>>;
export type NodeSelector = Wire<V1NodeSelector>;
