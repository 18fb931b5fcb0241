/** The URL paths of kinds and objects. */
import { apiVersionOf, type KubeObject, type ObjectRef, type ResourceType } from '#shared/domain/kube-object.ts';
import { AppError } from '#shared/errors/app-error.ts';

type Query = Readonly<Record<string, string | number | boolean | undefined>>;

export function collectionPath(type: ResourceType, namespace?: string): string {
  const root = type.group === '' ? `/api/${type.version}` : `/apis/${type.group}/${type.version}`;
  return type.namespaced && namespace !== undefined
    ? `${root}/namespaces/${encodeURIComponent(namespace)}/${type.plural}`
    : `${root}/${type.plural}`;
}

export function objectPath(type: ResourceType, ref: ObjectRef, subresource?: string): string {
  requireName(type, ref);
  const path = `${collectionPath(type, ref.namespace)}/${encodeURIComponent(ref.name)}`;
  return subresource === undefined ? path : `${path}/${subresource}`;
}

export function withQuery(path: string, query: Query): string {
  const pairs = Object.entries(query).flatMap(([key, value]) =>
    value === undefined || value === '' ? [] : [`${key}=${encodeURIComponent(value)}`],
  );
  return pairs.length === 0 ? path : `${path}?${pairs.join('&')}`;
}

function requireName(type: ResourceType, ref: ObjectRef): void {
  if (ref.name === '' || ref.name === '.' || ref.name === '..') {
    throw new AppError('kube_invalid', `metadata.name of a ${type.kind} is ${JSON.stringify(ref.name)}, want a name`, {
      detail: { field: 'metadata.name', value: ref.name },
    });
  }
  requireNamespace(type, ref.namespace);
}

/** Without it a namespaced request would silently address the collection of all namespaces. */
export function requireNamespace(type: ResourceType, namespace: string | undefined): void {
  if (type.namespaced && (namespace === undefined || namespace === '')) {
    throw new AppError('kube_invalid', `metadata.namespace is missing, and a ${type.kind} lives in a namespace`, {
      detail: { field: 'metadata.namespace' },
    });
  }
}

/** How messages name a kind: `Pod (v1)`. */
export const kindText = (type: ResourceType): string => `${type.kind} (${apiVersionOf(type)})`;

/** List items come without them. */
export function withKind<T extends Pick<KubeObject, 'apiVersion' | 'kind'>>(type: ResourceType, object: T): T {
  return object.kind !== undefined && object.apiVersion !== undefined
    ? object
    : { ...object, apiVersion: apiVersionOf(type), kind: type.kind };
}
