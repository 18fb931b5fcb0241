/** What is read of both clusters before each step of a move, and what a step may be. */
import type { PersistentVolume, PersistentVolumeClaim } from '#shared/domain/core-kinds.ts';
import type { Pod } from '#shared/domain/kube-object.ts';
import type { VolumeMove, VolumeMoveStatus } from '#shared/schema/isthmus/volume-move.ts';
import type { MoverProgress } from '../mover/pull.ts';
import type { MoverRole } from './objects.ts';

export interface Facts {
  readonly move: VolumeMove;
  readonly nowMs: number;
  /** Of the name of the move. */
  readonly claim: PersistentVolumeClaim | undefined;
  readonly staging: PersistentVolumeClaim | undefined;
  readonly from: PersistentVolume | undefined;
  /** Of the staging claim before it is noted in the status. */
  readonly to: PersistentVolume | undefined;
  /** All of the namespace. */
  readonly pods: readonly Pod[];
  /** Of the pods that copy. */
  readonly image: string | undefined;
  /** Why this move cannot be; asked only while it is Pending. */
  readonly refusal: string | undefined;
  readonly keys: boolean;
  readonly service: boolean;
  /** Of the mover that fetches, while it runs. */
  readonly progress: MoverProgress | undefined;
  /** Pods that have the volume that is left mounted where it is; asked from Freezing until the switch. `unknown`: that cluster does not answer. */
  readonly mountedBy: readonly string[] | 'unknown';
  /** Which cluster that has one of the volumes does not answer; asked while it is copied. */
  readonly silent: string | undefined;
  /**
   * The real claim behind the volume that is gone to; asked during the switch, and before the volume that was left goes. `silent`: its cluster does not
   * answer. Undefined: it says that it has none, or it was not asked.
   */
  readonly real: PersistentVolumeClaim | 'silent' | undefined;
  /** That behind the volume that was left; asked when an undo is ordered. */
  readonly left: PersistentVolumeClaim | undefined;
}

export type Step =
  | { readonly do: 'nothing' }
  | { readonly do: 'wait'; readonly on: string }
  | { readonly do: 'status'; readonly status: VolumeMoveStatus }
  | { readonly do: 'guard' | 'unguard' }
  | { readonly do: 'createKeys' | 'createService' | 'deleteKeys' | 'deleteService' }
  | {
      readonly do: 'createPod';
      readonly role: MoverRole;
      readonly claim: string;
      readonly at: string;
      readonly node?: string | undefined;
    }
  | { readonly do: 'deletePod'; readonly pod: Pod }
  | { readonly do: 'ungate'; readonly pod: Pod }
  | { readonly do: 'createClaim'; readonly claim: PersistentVolumeClaim }
  | { readonly do: 'patchClaim'; readonly claim: PersistentVolumeClaim; readonly patch: Patch }
  | { readonly do: 'deleteClaim'; readonly claim: PersistentVolumeClaim }
  | { readonly do: 'patchVolume'; readonly volume: PersistentVolume; readonly patch: Patch }
  | { readonly do: 'deleteVolume'; readonly volume: PersistentVolume }
  /** The real claim behind `to`. */
  | { readonly do: 'patchReal'; readonly claim: PersistentVolumeClaim; readonly patch: Patch };

/** A merge patch; the version that was read is added. */
export interface Patch {
  readonly metadata?: Readonly<Record<string, unknown>>;
  readonly spec?: Readonly<Record<string, unknown>>;
}
