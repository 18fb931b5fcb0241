/** One request of a hostile consumer at its provider, and how it is written down. */
import type { KubeApi } from '#kube/model/types.ts';
import { apiVersionOf, type KubeObject, type ResourceType } from '#shared/domain/kube-object.ts';

export type Who = 'kubelet' | 'controlPlane';
export interface Attempt {
  readonly about: string;
  readonly what: string;
  readonly who: Who;
  act(api: KubeApi): Promise<unknown>;
}

export const apps = 'apps-cons';
export const tenant = 'liqo-tenant-cons';
/** Everything that is not the consumer's own. */
export const foreignNamespaces = [
  'apps-other',
  'liqo-tenant-other',
  'liqo',
  'kube-system',
  'default',
  'plain',
] as const;

export const made = (type: ResourceType, namespace: string | undefined, name: string, more: object = {}): KubeObject =>
  ({
    apiVersion: apiVersionOf(type),
    kind: type.kind,
    metadata: { name, ...(namespace && { namespace }) },
    ...more,
  }) as KubeObject;
export const creating = (about: string, what: string, who: Who, type: ResourceType, object: KubeObject): Attempt => ({
  about,
  what,
  who,
  act: (api) => api.create(type, object),
});
export const withMetadata = (object: KubeObject, metadata: object): KubeObject => ({
  ...object,
  metadata: { ...object.metadata, ...metadata },
});
