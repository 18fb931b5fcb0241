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

/** The steady fields, then of each volatile one what is news in it: in this order, so that equal reports are equal as JSON. */
function withoutVolatile({ kind, data }: ObservedObject): ObservedObject['data'] {
  const volatile: Readonly<Record<string, (value: unknown) => unknown>> = brokerKind(kind)?.volatile ?? {};
  const steady = Object.entries(data).filter(([field]) => !Object.hasOwn(volatile, field));
  const news = Object.entries(volatile).map(([field, newsIn]): [string, unknown] => [field, newsIn(data[field])]);
  return Object.fromEntries([...steady, ...news]);
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
