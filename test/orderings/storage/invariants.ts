/** What must always hold of claims, moves and disks, asked after every single write. */
import { amountOf } from '#agent/storage/model/claims.ts';
import { type PersistentVolumeClaim, persistentVolumeClaims, persistentVolumes } from '#shared/domain/core-kinds.ts';
import type { KubeObject } from '#shared/domain/kube-object.ts';
import type { Clock } from '#shared/ports/clock.ts';
import { type VolumeMove, type VolumeMoveStatus, volumeMoves } from '#shared/schema/isthmus/volume-move.ts';
import type { Disk, Kubernetes } from './kubernetes.ts';
import type { App, Played } from './played.ts';

export const over: ReadonlySet<string> = new Set(['Refused', 'Confirmed', 'Undone', 'Aborted']);
/** In them the move may delete, or hand over, the volume that is not the claim's. */
const ending: ReadonlySet<string> = new Set(['Discarding', 'Keeping', ...over]);

/** Without time going by. */
const mostWritesAtOnce = 5_000;

interface InvariantsDeps {
  readonly home: Kubernetes;
  readonly clusters: readonly Kubernetes[];
  readonly apps: ReadonlyMap<string, App>;
  readonly played: Played;
  readonly clock: Clock;
  readonly fault: (what: string) => void;
  /** The freeze of an application begins. */
  readonly onFreeze: (app: App) => void;
  /** Agents answer each other's writes without end. */
  readonly onStorm: () => void;
}

export class Invariants {
  /** How many moves entered each phase. */
  readonly phases = new Map<string, number>();
  readonly #deps: InvariantsDeps;
  /** By UID of the move: the disk to which it can be undone. */
  readonly #undoable = new Map<string, Disk>();
  /** UIDs of moves whose last order is a confirmation from before the switch, which the rules of the kind would refuse. */
  readonly #early = new Set<string>();
  /** Disks that were handed over to records, and those of retained volumes. */
  readonly #kept = new Set<Disk>();
  #writesAt = { ms: 0, count: 0 };

  constructor(deps: InvariantsDeps) {
    this.#deps = deps;
  }

  ordered({ metadata, status }: VolumeMove, order: string): void {
    const { uid = '' } = metadata;
    if (order === 'confirm' && status?.phase !== 'Undoable') this.#early.add(uid);
    else this.#early.delete(uid);
  }

  /** From now on it must not go. */
  keep(disk: Disk): void {
    this.#kept.add(disk);
  }

  check(before: KubeObject, after: KubeObject | undefined): void {
    this.#expectEnd();
    if (before.kind === persistentVolumeClaims.kind)
      this.#expectRoom(before as PersistentVolumeClaim, after as PersistentVolumeClaim | undefined);
    if (before.kind === volumeMoves.kind) this.#onMove(before as VolumeMove, after as VolumeMove | undefined);
    const disks = new Set(this.#deps.clusters.flatMap((one) => [...one.disks.values()]));
    const mounts = this.#deps.played.appMounts();
    for (const app of this.#deps.apps.values()) {
      const hasAll = ({ lines }: Disk): boolean => [...app.acknowledged].every((line) => lines.has(line));
      if (app.acknowledged.size > 0 && ![...disks].some(hasAll))
        this.#deps.fault(`no disk has all lines of ${app.name}`);
      const mounted = new Set(mounts.filter((one) => one.app === app).map(({ disk }) => disk.id));
      if (mounted.size > 1) this.#deps.fault(`${app.name} has ${[...mounted].join(' and ')} mounted`);
    }
    for (const disk of this.#undoable.values())
      if (!disks.has(disk)) this.#deps.fault(`disk ${disk.id} is gone, to which a move can be undone`);
    for (const disk of this.#kept)
      if (!disks.has(disk)) this.#deps.fault(`disk ${disk.id} is gone, which was to be kept`);
    if (before.kind === persistentVolumes.kind && after === undefined) this.#expectVolume(before);
  }

  /** Agents that answer each other's writes leave nothing else its turn, not even time. */
  #expectEnd(): void {
    const ms = this.#deps.clock.now();
    if (this.#writesAt.ms !== ms) this.#writesAt = { ms, count: 0 };
    this.#writesAt.count += 1;
    if (this.#writesAt.count !== mostWritesAtOnce) return;
    this.#deps.fault(`${mostWritesAtOnce} writes in one moment`);
    this.#deps.onStorm();
  }

  /** A disk whose PersistentVolume is gone is an orphan without a record. */
  #expectVolume({
    metadata,
    spec,
  }: KubeObject & { readonly spec?: { readonly csi?: { readonly volumeHandle: string } } }): void {
    const id = spec?.csi?.volumeHandle ?? '';
    for (const { disks, name } of this.#deps.clusters)
      if (disks.has(id) && metadata.name.startsWith('disk-'))
        this.#deps.fault(`disk ${id} of ${name} has no PersistentVolume`);
  }

  #onMove(before: VolumeMove, after: VolumeMove | undefined): void {
    const { uid = '', name } = before.metadata;
    const [was, status] = [before.status?.phase, after?.status];
    if (status === undefined || after === undefined) return void this.#undoable.delete(uid);
    if (status.phase === was) return;
    this.phases.set(status.phase, (this.phases.get(status.phase) ?? 0) + 1);
    this.#expectFrozen(was, status);
    this.#expectWindow(before, status);
    const left = this.#undoable.get(uid);
    if (ending.has(status.phase)) this.#undoable.delete(uid);
    if (status.phase === 'Keeping' && left) this.#kept.add(left);
    const disk = this.#deps.played.diskBehind(status.from?.volume);
    if (status.phase === 'Undoable' && disk) this.#undoable.set(uid, disk);
    // An undo without a copy gives up what was written since the switch, as ordered.
    const app = [...this.#deps.apps.values()].find(({ claim }) => claim === name);
    if (status.phase === 'Freezing' && app) this.#deps.onFreeze(app);
    const to = this.#deps.played.diskBehind(status.to?.volume);
    const isGivenUp = was === 'Freezing' && status.phase === 'Switching' && status.withoutCopy;
    if (isGivenUp && app && to) app.acknowledged = new Set(to.lines);
  }

  /** No confirmation from before the switch ends the time for an undo. */
  #expectWindow({ metadata, status: was }: VolumeMove, { phase }: VolumeMoveStatus): void {
    if (was?.phase !== 'Undoable' || phase !== 'Discarding' || !this.#early.has(metadata.uid ?? '')) return;
    if (was.undoUntil === undefined || this.#deps.clock.now() < Date.parse(was.undoUntil))
      this.#deps.fault(`move ${metadata.name} is confirmed by an order from before the switch`);
  }

  /** The last copy, and a switch without one, begin when no application has the volume. */
  #expectFrozen(was: string | undefined, { phase, from }: VolumeMoveStatus): void {
    if (was !== 'Freezing' || (phase !== 'FinalCopy' && phase !== 'Switching')) return;
    const disk = this.#deps.played.diskBehind(from?.volume);
    if (this.#deps.played.appMounts().some((mount) => mount.disk === disk))
      this.#deps.fault(`${phase} begins while an application has ${disk?.id} mounted`);
  }

  /** A claim that is deleted for the switch gets a volume that is as large as it asks for. */
  #expectRoom(before: PersistentVolumeClaim, after: PersistentVolumeClaim | undefined): void {
    if (before.metadata.deletionTimestamp !== undefined || after?.metadata.deletionTimestamp === undefined) return;
    const { namespace = '', name } = before.metadata;
    const status = this.#deps.home.store.now(volumeMoves, { namespace, name })?.status;
    if (status?.phase !== 'Switching' || status.way === 'back' || status.gaveUp !== undefined) return;
    if (
      amountOf(before.spec?.resources?.requests) > amountOf(this.#deps.home.volume(status.to?.volume)?.spec?.capacity)
    )
      this.#deps.fault(`claim ${name} asks for more than its next volume has`);
  }
}
