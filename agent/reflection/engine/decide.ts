/** What one object of the consumer needs at the provider: the rules of docs/design/offloading.md#what-does-reflection-write, in their order. Pure. */
import { covers } from '#kube/writes/write-if-changed.ts';
import type { KubeObject } from '#shared/domain/kube-object.ts';
import { isthmusAnnotation } from '#shared/domain/liqo-keys.ts';
import type { Content, OutgoingKind, Pair } from '../kinds/kind.ts';
import { type CopyObject, fingerprintOf, isOurs } from '../model/metadata.ts';

export type DesiredCopy =
  /** Pruned, like all objects here: contents may be digests. */
  | { readonly kind: 'copy'; readonly copy: CopyObject }
  /** It should be there, but cannot be made. */
  | { readonly kind: 'refused'; readonly why: string }
  /** It cannot be made yet. */
  | { readonly kind: 'awaits'; readonly why: string }
  /** The policy or the object itself says no. */
  | { readonly kind: 'disabled' }
  /** There is no local object, or one that is never reflected. */
  | { readonly kind: 'none' };

export interface Observed {
  readonly desired: DesiredCopy;
  readonly remote?: KubeObject | undefined;
}

export type Action =
  | { readonly do: 'nothing' }
  /** Absent as far as is known. */
  | { readonly do: 'create'; readonly fingerprint: string }
  /** `isNews`: what is wanted is not what we wrote last, so the API server may hold that against the object's past. */
  | { readonly do: 'update'; readonly fingerprint: string; readonly uid: string; readonly isNews: boolean }
  /** Delete; the copy is made when this one is gone. */
  | { readonly do: 'replace'; readonly uid: string }
  | { readonly do: 'delete'; readonly uid: string; readonly because: 'disabled' | 'gone' }
  | { readonly do: 'wait'; readonly message: string }
  | { readonly do: 'warn'; readonly message: string };

const nothing: Action = { do: 'nothing' };

export function decide({ desired, remote }: Observed, kind: OutgoingKind, pair: Pair): Action {
  switch (desired.kind) {
    case 'refused':
      return { do: 'warn', message: desired.why };
    case 'awaits':
      return { do: 'wait', message: desired.why };
    case 'copy':
      return toward(desired.copy, remote, kind, pair);
    case 'disabled':
    case 'none':
      if (!remote || !isOurs(remote, pair) || remote.metadata.deletionTimestamp !== undefined) return nothing;
      return { do: 'delete', uid: uidOf(remote), because: desired.kind === 'disabled' ? 'disabled' : 'gone' };
  }
}

const uidOf = ({ metadata }: KubeObject): string => metadata.uid ?? '';

function toward(copy: CopyObject, remote: KubeObject | undefined, kind: OutgoingKind, pair: Pair): Action {
  const fingerprint = fingerprintOf(copy);
  if (!remote) return { do: 'create', fingerprint };
  if (!isOurs(remote, pair)) {
    const { namespace, name } = copy.metadata;
    const what = `${kind.remote.kind} ${namespace}/${name} at cluster ${pair.provider}`;
    return { do: 'warn', message: `${what} is not ours and is left alone; rename this object, or remove that one` };
  }
  // Its name is free when it has gone: the watch says so.
  if (remote.metadata.deletionTimestamp !== undefined) return nothing;
  const { apiVersion: _, kind: __, metadata, ...content } = copy;
  if (kind.mustReplace(remote as never, content as Content)) return { do: 'replace', uid: uidOf(remote) };
  const same = remote.metadata.annotations?.[isthmusAnnotation.reflected] === fingerprint;
  const { labels, annotations } = metadata;
  const intact = same && covers(remote, { ...content, metadata: { labels, annotations } });
  return intact ? nothing : { do: 'update', fingerprint, uid: uidOf(remote), isNews: !same };
}
