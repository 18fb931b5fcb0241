/** Events of the provider about what was reflected there, as events about the objects here (reference 5.8). */
import type { CoreEvent } from '#shared/domain/core-kinds.ts';
import type { KubeObject } from '#shared/domain/kube-object.ts';
import { isOurs, pairLabels } from '../model/metadata.ts';
import type { Pair } from './kind.ts';

const suffix = ' (remote)';

/** Kinds that users know here, by what the provider's events call them. */
const knownHere: Readonly<Record<string, string>> = {
  Pod: 'Pod',
  ShadowPod: 'Pod',
  Service: 'Service',
  EndpointSlice: 'EndpointSlice',
  ShadowEndpointSlice: 'EndpointSlice',
  Ingress: 'Ingress',
  ConfigMap: 'ConfigMap',
  Secret: 'Secret',
};

export interface Concerned {
  readonly kind: string;
  readonly name: string;
}

/** What a remote event is about, in terms of this cluster; undefined: nothing that is known here. An echo is about nothing. */
export function concerned({ involvedObject, source, reportingComponent }: CoreEvent): Concerned | undefined {
  const kind = knownHere[involvedObject?.kind ?? ''];
  const name = involvedObject?.name;
  if (kind === undefined || !name || (source?.component ?? reportingComponent)?.endsWith(suffix)) return undefined;
  return { kind, name };
}

/** What a copy is compared by and what changes in a series. */
const changing = ['count', 'firstTimestamp', 'lastTimestamp', 'series', 'message', 'reason', 'type'] as const;

/** What is kept of copies: there may be several for each pod. */
export function pruneCopy({ apiVersion, kind, metadata, ...event }: CoreEvent): CoreEvent {
  const { name, namespace, uid, resourceVersion, labels } = metadata;
  const kept = Object.fromEntries(changing.flatMap((key) => (event[key] === undefined ? [] : [[key, event[key]]])));
  return { apiVersion, kind, metadata: { name, namespace, uid, resourceVersion, labels }, ...kept } as CoreEvent;
}

/** What is kept of events of the provider: of those about nothing that is known here, as about claims, only that they are there. */
export function pruneRemote(event: CoreEvent): CoreEvent {
  if (concerned(event) !== undefined) return event;
  const { apiVersion, kind, metadata } = event;
  const { name, namespace, uid, resourceVersion } = metadata;
  return { apiVersion, kind, metadata: { name, namespace, uid, resourceVersion }, involvedObject: {} } as CoreEvent;
}

export function localEvent(remote: CoreEvent, about: KubeObject, pair: Pair): CoreEvent {
  const { apiVersion, kind, metadata, involvedObject, source, ...rest } = remote;
  const component = source?.component || remote.reportingComponent || pair.provider;
  return {
    ...rest,
    apiVersion,
    kind,
    metadata: { name: metadata.name, namespace: about.metadata.namespace ?? '', labels: pairLabels(pair) },
    involvedObject: {
      apiVersion: about.apiVersion,
      kind: about.kind,
      name: about.metadata.name,
      ...(about.metadata.namespace === undefined ? {} : { namespace: about.metadata.namespace }),
      ...(about.metadata.uid === undefined ? {} : { uid: about.metadata.uid }),
      ...(involvedObject.fieldPath ? { fieldPath: involvedObject.fieldPath } : {}),
    },
    source: { ...source, component: `${component}${suffix}` },
  };
}

export type EventAction =
  | { readonly do: 'nothing' }
  | { readonly do: 'create'; readonly event: CoreEvent }
  | { readonly do: 'patch'; readonly patch: Readonly<Record<string, unknown>> }
  | { readonly do: 'delete'; readonly uid: string };

/** `wanted`: the copy as it should be; undefined: there should be none. */
export function decideEvent(copy: CoreEvent | undefined, wanted: CoreEvent | undefined, pair: Pair): EventAction {
  if (!wanted) return copy && isOurs(copy, pair) ? { do: 'delete', uid: copy.metadata.uid ?? '' } : { do: 'nothing' };
  if (!copy) return { do: 'create', event: wanted };
  if (!isOurs(copy, pair)) return { do: 'nothing' };
  const differing = changing.filter((key) => JSON.stringify(copy[key]) !== JSON.stringify(wanted[key]));
  if (differing.length === 0) return { do: 'nothing' };
  return { do: 'patch', patch: Object.fromEntries(differing.map((key) => [key, wanted[key] ?? null])) };
}
