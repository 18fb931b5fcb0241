/**
 * The next step on the way from a claim to its volume. Each step derives from the objects alone: the real claim is marked `unpublished` from its
 * creation until the volume of this cluster stands for it, so a real claim without a home can be told from one that has data. Pure.
 */
import type { PersistentVolume, PersistentVolumeClaim } from '#shared/domain/core-kinds.ts';
import type { VolumeSnapshotContent } from '#shared/domain/snapshot-kinds.ts';
import { isUnpublished, nodeOf } from '../model/claims.ts';
import type { Place } from '../model/place.ts';
import { type Copy, dataSourceElsewhere, type Origin } from './source.ts';
import type { Target } from './target.ts';

type Claim = PersistentVolumeClaim;

/** A real claim for this very claim (by UID). */
export interface Backing {
  /** Absent: in this cluster. */
  readonly provider?: string | undefined;
  readonly object: Claim;
}

export interface Observed {
  readonly claim: Claim;
  readonly target: Target;
  /** The volume of this cluster for this claim is there. */
  readonly published: boolean;
  readonly backings: readonly Backing[];
  /** Of the real claim in this cluster, when it is bound. */
  readonly source?: PersistentVolume | undefined;
  /** At the provider of the target; undefined: it cannot be asked now. */
  readonly place?: Place | undefined;
  /** What its volume is to begin with, where no real claim says so already; undefined: nothing. */
  readonly origin?: Origin | undefined;
}

export type Step =
  | { readonly do: 'nothing' }
  | { readonly do: 'unmark'; readonly backing: Backing }
  | { readonly do: 'discard'; readonly backing: Backing }
  | { readonly do: 'refuse'; readonly message: string }
  /** `reason`: of the event, where it is not the usual one. */
  | { readonly do: 'reschedule'; readonly message: string; readonly reason?: string }
  | { readonly do: 'wait'; readonly on: string }
  /** A snapshot of this cluster is lent to the real claim that is to be made of it. */
  | { readonly do: 'lend'; readonly original: VolumeSnapshotContent }
  | { readonly do: 'createLocal'; readonly copy?: Copy }
  | { readonly do: 'createRemote'; readonly namespace: string; readonly copy?: Copy }
  | { readonly do: 'publishLocal'; readonly backing: Backing; readonly source: PersistentVolume }
  | { readonly do: 'publishRemote'; readonly backing: Backing };

const nothing: Step = { do: 'nothing' };

export function decide(observed: Observed): Step {
  const { claim, target, published, backings } = observed;
  if (published || claim.spec?.volumeName) {
    const marked = published ? backings.find(({ object }) => isUnpublished(object)) : undefined;
    return marked ? { do: 'unmark', backing: marked } : nothing;
  }
  // A finished claim without its volume has lost it: what it has is not touched.
  const open = backings.filter(({ object }) => isUnpublished(object));
  const [first] = open;
  if (claim.metadata.deletionTimestamp !== undefined) return first ? { do: 'discard', backing: first } : nothing;
  const stray = open.find((backing) => !belongs(backing, target, claim));
  if (target.kind === 'none') return nothing;
  if (target.kind === 'refused')
    return stray ? { do: 'discard', backing: stray } : { do: 'refuse', message: target.message };
  if (stray) return { do: 'discard', backing: stray };
  if (target.kind === 'elsewhere') return { do: 'reschedule', message: target.message };
  if (first?.object.metadata.deletionTimestamp !== undefined)
    return { do: 'wait', on: 'the real claim of an earlier attempt to go' };
  const held = first === undefined ? heldBy(observed.origin) : undefined;
  if (held) return held;
  return target.kind === 'local' ? local(observed, first) : remote(observed, target.provider, first);
}

/** Nothing is made empty that is to begin with data, nor elsewhere than those. A real claim that is there was made with them. */
function heldBy(origin: Origin | undefined): Step | undefined {
  switch (origin?.kind) {
    case 'wait':
      return { do: 'wait', on: origin.on };
    case 'refused':
      return { do: 'refuse', message: origin.message };
    case 'elsewhere':
      return { do: 'reschedule', message: origin.message, reason: dataSourceElsewhere };
    case 'lend':
      return { do: 'lend', original: origin.original };
    default:
      return undefined;
  }
}

const copyOf = (origin: Origin | undefined): { readonly copy?: Copy } =>
  origin?.kind === 'copy' ? { copy: origin } : {};

function belongs({ provider, object }: Backing, target: Target, claim: Claim): boolean {
  if (target.kind === 'remote') return provider === target.provider;
  if (target.kind !== 'local' || provider !== undefined) return false;
  const node = nodeOf(object);
  return node === undefined || node === nodeOf(claim) || object.spec?.volumeName !== undefined;
}

function local({ claim, source, origin }: Observed, backing: Backing | undefined): Step {
  if (!backing) return { do: 'createLocal', ...copyOf(origin) };
  const { status, spec } = backing.object;
  if (status?.phase === 'Bound' && source) return { do: 'publishLocal', backing, source };
  // The provisioner of the real class takes the node away when it cannot make a volume there: nothing goes on, so another may be chosen.
  if (nodeOf(backing.object) === undefined && !spec?.volumeName)
    return {
      do: 'reschedule',
      message: `StorageClass ${spec?.storageClassName} makes no volume for node ${nodeOf(claim)}; events of claim ${backing.object.metadata.namespace}/${backing.object.metadata.name} say why`,
    };
  return {
    do: 'wait',
    on: `a volume of StorageClass ${spec?.storageClassName} for node ${nodeOf(claim)}: its real claim is ${backing.object.metadata.namespace}/${backing.object.metadata.name}`,
  };
}

function remote({ claim, place, origin }: Observed, provider: string, backing: Backing | undefined): Step {
  if (backing) return { do: 'publishRemote', backing };
  const { namespace } = claim.metadata;
  switch (place?.kind) {
    case 'accepted':
      return { do: 'createRemote', namespace: place.remoteNamespace, ...copyOf(origin) };
    case 'held':
      return { do: 'wait', on: place.why };
    case 'none':
      return { do: 'reschedule', message: `namespace ${namespace} is not offloaded to cluster ${provider}` };
    case undefined:
      return { do: 'wait', on: `the connection to cluster ${provider}` };
  }
}
