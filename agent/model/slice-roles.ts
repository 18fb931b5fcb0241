/** Which side of a peering a replicated object is: the consumer's original or the provider's copy. Pure. */
import type { KubeObject } from '#shared/domain/kube-object.ts';
import { annotation, label } from '#shared/domain/liqo-keys.ts';
import type { ResourceSlice } from '#shared/schema/liqo/resource-slice.ts';

export const isOriginal = (object: KubeObject): boolean =>
  object.metadata.labels?.[label.replication] === 'true' && object.metadata.labels[label.remoteId] !== undefined;

export const isReplica = (object: KubeObject): boolean =>
  object.metadata.labels?.[label.replicated] === 'true' && object.metadata.labels[label.originId] !== undefined;

/** The provider of an original. */
export const providerOf = (object: KubeObject): string | undefined => object.metadata.labels?.[label.remoteId];

type SliceCondition = NonNullable<NonNullable<ResourceSlice['status']>['conditions']>[number];

export const conditionOf = (slice: ResourceSlice, type: SliceCondition['type']): SliceCondition | undefined =>
  slice.status?.conditions?.find((condition) => condition.type === type);

export const isAccepted = (slice: ResourceSlice, type: SliceCondition['type']): boolean =>
  conditionOf(slice, type)?.status === 'Accepted';

const meansYes = (value: string | undefined): boolean =>
  value !== undefined && value !== '' && value.toLowerCase() !== 'false';
export const wantsVirtualNode = (slice: ResourceSlice): boolean =>
  meansYes(slice.metadata.annotations?.[annotation.createVirtualNode]);

const cordons = (value: string | undefined): boolean => value !== undefined && !['false', 'False', '0'].includes(value);
/** New pods of this slice are refused at the provider. */
export const isCordoned = (slice: ResourceSlice): boolean =>
  cordons(slice.metadata.annotations?.[annotation.cordon]) ||
  cordons(slice.metadata.annotations?.[annotation.cordonTenant]);
