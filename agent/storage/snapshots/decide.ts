/**
 * What a snapshot of a volume at a provider needs next. In this cluster it is a VolumeSnapshotContent of our driver, for which the agent does what
 * csi-snapshotter does for other drivers; at the provider it is a VolumeSnapshot of the real claim. That one is deleted only when the content is deleted by
 * order and with policy Delete, and is marked before as one whose data may go. Pure.
 */
import { homeSnapshotOf, type RemoteSnapshot, remoteSnapshotOf, snapshotHandle } from '#shared/domain/snapshot-keys.ts';
import {
  beingDeleted,
  contentFinalizer,
  type SnapshotError,
  type VolumeSnapshot,
  type VolumeSnapshotContent,
  type VolumeSnapshotContentStatus,
} from '#shared/domain/snapshot-kinds.ts';
import { storageAnnotation, storageData } from '#shared/domain/storage-keys.ts';
import { amountOf } from '../model/claims.ts';

/** The VolumeSnapshot at the provider. */
export type Taken =
  | { readonly kind: 'there'; readonly object: VolumeSnapshot }
  | { readonly kind: 'absent' }
  /** The provider cannot be asked for it any more, and keeps it: its namespace or the whole peering has ended. */
  | { readonly kind: 'over'; readonly why: string }
  /** The provider gives no right to it. */
  | { readonly kind: 'forbidden'; readonly why: string }
  | { readonly kind: 'unknown'; readonly on: string };

/** The real claim of which a snapshot is to be taken. */
export type Source =
  | { readonly kind: 'ready'; readonly claimName: string }
  /** It may become ready. */
  | { readonly kind: 'waits'; readonly on: string }
  /** A person must act. */
  | { readonly kind: 'refused'; readonly why: string };

export interface Observed {
  readonly content: VolumeSnapshotContent;
  /** Where the snapshot is or is to be; undefined: the content's handle names no place at a provider. */
  readonly at?: RemoteSnapshot | undefined;
  readonly taken: Taken;
  /** Undefined: none is needed, because the snapshot is there or was. */
  readonly source?: Source | undefined;
  readonly nowMs: number;
}

export type Action =
  | { readonly do: 'take'; readonly at: RemoteSnapshot; readonly claimName: string }
  /** Merge patch of the content's status. */
  | { readonly do: 'status'; readonly patch: Readonly<Record<string, unknown>> }
  /** Mark it: its data may go. */
  | { readonly do: 'order'; readonly snapshot: VolumeSnapshot }
  | { readonly do: 'erase'; readonly snapshot: VolumeSnapshot }
  /** Nothing holds the content any more. */
  | { readonly do: 'release' }
  | { readonly do: 'tell'; readonly reason: string; readonly message: string }
  | { readonly do: 'wait'; readonly on: string };

/** What no later look takes back. */
export const isFinal = (action: Action): boolean =>
  action.do === 'order' || action.do === 'erase' || action.do === 'release';

/** As csi-snapshotter: not before the snapshot controller has said that it is meant, but for a content that no VolumeSnapshot ever had. */
function isToGo({ metadata, spec }: VolumeSnapshotContent): boolean {
  if (metadata.deletionTimestamp === undefined) return false;
  const wasNeverBound = spec.source.snapshotHandle !== undefined && !spec.volumeSnapshotRef.uid;
  return wasNeverBound || metadata.annotations?.[beingDeleted] !== undefined;
}

export function decide(observed: Observed): readonly Action[] {
  const { content } = observed;
  const isHeld = content.metadata.finalizers?.includes(contentFinalizer) ?? false;
  if (content.metadata.deletionTimestamp !== undefined) return isHeld && isToGo(content) ? ending(observed) : [];
  // Without its finalizer a content could go while its snapshot is being taken. The snapshot controller adds it once both are bound.
  return isHeld ? living(observed) : [];
}

function ending({ content, at, taken }: Observed): readonly Action[] {
  if (content.spec.deletionPolicy !== 'Delete' || at === undefined) return [{ do: 'release' }];
  switch (taken.kind) {
    case 'unknown':
      return [{ do: 'wait', on: taken.on }];
    case 'over':
    case 'forbidden':
      return [kept(taken.why), { do: 'release' }];
    case 'absent':
      return [{ do: 'release' }];
    case 'there': {
      const { object } = taken;
      if (!isOf(object, content))
        return [
          kept(`VolumeSnapshot ${atText(at)} is not of this VolumeSnapshotContent, and stays`),
          { do: 'release' },
        ];
      const isOrdered = object.metadata.annotations?.[storageAnnotation.data] === storageData.delete;
      const order: readonly Action[] = isOrdered ? [] : [{ do: 'order', snapshot: object }];
      return object.metadata.deletionTimestamp === undefined
        ? [...order, { do: 'erase', snapshot: object }]
        : [...order, { do: 'wait', on: `VolumeSnapshot ${atText(at)} to go` }];
    }
  }
}

const kept = (message: string): Action => ({ do: 'tell', reason: 'DataKeptAtProvider', message });

const atText = ({ provider, namespace, name }: RemoteSnapshot): string => `${namespace}/${name} at cluster ${provider}`;

/** Of a content that names its snapshot itself, any that an agent of this cluster has made. */
function isOf({ metadata }: VolumeSnapshot, { spec }: VolumeSnapshotContent): boolean {
  const home = homeSnapshotOf(metadata.annotations);
  if (home === undefined) return false;
  return spec.source.snapshotHandle !== undefined || home.uid === spec.volumeSnapshotRef.uid;
}

function living(observed: Observed): readonly Action[] {
  const { content, at, taken, source } = observed;
  const { spec, status } = content;
  if (at === undefined) {
    const [field, handle] =
      spec.source.snapshotHandle === undefined
        ? ['volumeHandle', spec.source.volumeHandle]
        : ['snapshotHandle', spec.source.snapshotHandle];
    return failing(
      observed,
      `spec.source.${field} is ${handle}, which is not at a provider: accepted is a VolumeSnapshotClass of the driver that has made the volume`,
    );
  }
  switch (taken.kind) {
    case 'unknown':
      return status?.readyToUse ? [{ do: 'wait', on: taken.on }] : waitingFor(observed, taken.on);
    case 'over':
      return failing(observed, taken.why);
    case 'forbidden':
      return waitingFor(observed, taken.why);
    case 'there':
      return isOf(taken.object, content)
        ? mirrored(observed, at, taken.object)
        : failing(observed, `VolumeSnapshot ${atText(at)} is of another VolumeSnapshot of this cluster, or of none`);
    case 'absent':
      if (status?.snapshotHandle !== undefined || spec.source.snapshotHandle !== undefined)
        return failing(observed, `there is no VolumeSnapshot ${atText(at)}; it is never taken again`);
      if (source === undefined) return [];
      if (source.kind === 'refused') return failing(observed, source.why);
      if (source.kind === 'waits') return waitingFor(observed, source.on);
      return [{ do: 'take', at, claimName: source.claimName }];
  }
}

/** Merge patch; nothing when it says so already. The time is that of the first time. */
export function failing({ content, nowMs }: Pick<Observed, 'content' | 'nowMs'>, message: string): readonly Action[] {
  const { status } = content;
  if (status?.readyToUse === false && status.error?.message === message) return [];
  const error: SnapshotError = { message, time: timeOf(nowMs) };
  return [{ do: 'status', patch: { readyToUse: false, error } }];
}

const waitingFor = (observed: Observed, on: string): readonly Action[] => [
  ...failing(observed, `waiting for ${on}`),
  { do: 'wait', on },
];

const timeOf = (ms: number): string => new Date(ms).toISOString().replace(/\.\d+Z$/, 'Z');
const nanoseconds = 1_000_000;
const unit = 1_000_000_000n;

/** What the provider's snapshot controller says of it, as the status of a content has it. Undefined: it has not been cut yet. */
function statusOf(at: RemoteSnapshot, { status }: VolumeSnapshot): VolumeSnapshotContentStatus {
  const cutMs = Date.parse(status?.creationTime ?? '');
  const bytes = Number(
    amountOf(status?.restoreSize === undefined ? undefined : { storage: status.restoreSize }) / unit,
  );
  return {
    readyToUse: status?.readyToUse === true,
    ...(Number.isFinite(cutMs) && { snapshotHandle: snapshotHandle(at), creationTime: cutMs * nanoseconds }),
    ...(bytes > 0 && { restoreSize: bytes }),
  };
}

function mirrored(observed: Observed, at: RemoteSnapshot, object: VolumeSnapshot): readonly Action[] {
  const { content, nowMs } = observed;
  const before = content.status ?? {};
  if (object.metadata.deletionTimestamp !== undefined)
    return failing(observed, `VolumeSnapshot ${atText(at)} is being deleted`);
  const wanted = statusOf(at, object);
  const said = object.status?.error?.message;
  const message = wanted.readyToUse || said === undefined ? undefined : `cluster ${at.provider}: ${said}`;
  const patch: Record<string, unknown> = Object.fromEntries(
    Object.entries(wanted).filter(([key, value]) => before[key as keyof typeof wanted] !== value),
  );
  if (message !== before.error?.message) patch.error = message === undefined ? null : { message, time: timeOf(nowMs) };
  return [
    ...(Object.keys(patch).length > 0 ? [{ do: 'status', patch } as const] : []),
    ...(wanted.readyToUse ? [] : [{ do: 'wait', on: `VolumeSnapshot ${atText(at)} to be ready to use` } as const]),
  ];
}

/** Where the snapshot of this content is, or is to be. */
export function placeOf(
  { spec, status }: VolumeSnapshotContent,
  nameAt: (uid: string) => string,
): RemoteSnapshot | undefined {
  const handle = spec.source.snapshotHandle ?? status?.snapshotHandle;
  if (handle !== undefined) return remoteSnapshotOf(handle);
  const volume = remoteSnapshotOf(spec.source.volumeHandle ?? '');
  const { uid } = spec.volumeSnapshotRef;
  return volume && uid ? { ...volume, name: nameAt(uid) } : undefined;
}

/** How long until another look at what is not ready: soon at first, half a minute in the end. */
export const nextLookMs = (sinceMs: number): number => Math.min(Math.max(sinceMs / 4, 1_000), 30_000);
