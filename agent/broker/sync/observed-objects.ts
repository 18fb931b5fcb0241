/** What the agent reports of the objects of a peering, as each kind says, and which difference between two reports is news. Pure. */
import type * as z from 'zod';
import type { KubeObject } from '#shared/domain/kube-object.ts';
import {
  type DesiredSet,
  mostUnfit,
  type ObservedObject,
  type ObservedSet,
  type Refusal,
} from '#shared/schema/protocol/agent-protocol.ts';
import { isObservedKind, readData } from '#shared/schema/protocol/observed-data.ts';
import { brokerKind } from '../kinds/all.ts';

/** The set without the values that always change a little: two sets that differ here are worth a report at once. */
export const newsOf = (set: ObservedSet): ObservedSet => ({
  ...set,
  objects: set.objects.map((object) => ({ ...object, data: withoutVolatile(object) })),
});

function withoutVolatile({ kind, data }: ObservedObject): ObservedObject['data'] {
  const volatile = Object.entries(brokerKind(kind)?.volatile ?? {}) as [string, (value: unknown) => unknown][];
  return { ...data, ...Object.fromEntries(volatile.map(([field, newsIn]) => [field, newsIn(data[field])])) };
}

export function observedObject(kind: string, apiVersion: string, object: KubeObject): ObservedObject {
  const { metadata } = object;
  const { data, unfit } = isObservedKind(kind)
    ? readData(kind, brokerKind(kind)?.observed(object) ?? {})
    : { data: {}, unfit: [] };
  return {
    apiVersion,
    kind,
    ...(metadata.namespace === undefined ? {} : { namespace: metadata.namespace }),
    name: metadata.name,
    uid: metadata.uid ?? '',
    ...(metadata.generation === undefined ? {} : { generation: metadata.generation }),
    ...(metadata.deletionTimestamp === undefined ? {} : { deleting: true }),
    data,
    ...(unfit.length === 0 ? {} : { unfit: unfit.slice(0, mostUnfit).map((one) => ({ ...one })) }),
  };
}

export const observedSet = (
  set: Pick<DesiredSet, 'peering' | 'role'>,
  appliedRevision: number,
  objects: readonly ObservedObject[],
  refusals: readonly z.infer<typeof Refusal>[],
  ended = false,
): ObservedSet => ({
  peering: set.peering,
  role: set.role,
  appliedRevision,
  objects: [...objects].sort((a, b) => (`${a.kind}/${a.name}` < `${b.kind}/${b.name}` ? -1 : 1)),
  refusals: [...refusals],
  ...(ended ? { ended } : {}),
});
