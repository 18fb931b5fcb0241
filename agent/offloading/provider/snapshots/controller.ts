/** Provider: the data of snapshots outlives the VolumeSnapshots of guests, unless their consumer ordered its deletion. Every step derives from the objects. */
import type { Cluster, Controller } from '#kube/model/types.ts';
import { type ControllerDeps, createController, watch } from '#kube/run/controller.ts';
import { whenServed } from '#kube/run/when-served.ts';
import { isChangedOrGone } from '#kube/writes/changed-or-gone.ts';
import { deleteObject, dropFinalizer } from '#kube/writes/write-if-changed.ts';
import { guestSnapshot, guestVolume } from '#shared/domain/guest-volume-keys.ts';
import { keyOf, refOf, refOfKey } from '#shared/domain/kube-object.ts';
import { again, type Outcome, settled } from '#shared/domain/outcome.ts';
import {
  contentNameFor,
  type VolumeSnapshotContent,
  volumeSnapshotContents,
  volumeSnapshots,
} from '#shared/domain/snapshot-kinds.ts';
import { unreachable } from '#shared/domain/unreachable.ts';
import { decideSnapshot, type SnapshotDecision } from './decide.ts';

export interface GuestSnapshotDeps extends ControllerDeps {
  readonly cluster: Cluster;
}

const staleMs = 100;
/** Until another look at a content that its driver takes down, which no watch here tells of before it says whose it is. */
const goingMs = 1_000;

/** Begins once the kinds of snapshots are installed. */
export const createGuestSnapshotController = (deps: GuestSnapshotDeps): Controller =>
  whenServed(
    {
      name: 'guest-snapshot',
      api: deps.cluster.api,
      types: [volumeSnapshots, volumeSnapshotContents],
      create: () => createServed(deps),
    },
    deps,
  );

function createServed({ cluster, ...deps }: GuestSnapshotDeps): Controller {
  const { api, caches, events } = cluster;
  const snapshots = caches.cache(volumeSnapshots, { labelSelector: guestVolume.label });
  const contents = caches.cache(volumeSnapshotContents);
  const ofContent = ({ spec }: VolumeSnapshotContent): string[] => {
    const { namespace, name } = spec.volumeSnapshotRef;
    const known = namespace && name ? snapshots.get({ namespace, name }) : undefined;
    return known ? [keyOf(known)] : [];
  };

  async function reconcile(key: string, signal: AbortSignal): Promise<Outcome> {
    const known = snapshots.get(refOfKey(key));
    if (known === undefined) return settled;
    let snapshot = known;
    if (known.metadata.deletionTimestamp !== undefined) {
      // Watches may lag: whether its data may go is decided by what the API server says now.
      const now = await api.get(volumeSnapshots, refOfKey(key), signal);
      if (now === undefined || now.metadata.uid !== known.metadata.uid) return settled;
      snapshot = now;
    }
    const consumer = snapshot.metadata.labels?.[guestVolume.label] ?? '';
    const content = await api.get(volumeSnapshotContents, { name: contentNameFor(snapshot) }, signal);
    const decision = decideSnapshot({ snapshot, consumer, content, nowMs: deps.clock.now() });
    try {
      return await perform(decision);
    } catch (error) {
      if (isChangedOrGone(error)) return again(staleMs);
      throw error;
    }

    async function perform(step: SnapshotDecision): Promise<Outcome> {
      switch (step.do) {
        case 'nothing':
          return settled;
        case 'wait':
          return again(goingMs);
        case 'guard':
        case 'arm':
          if (content) await write(content, step.patch);
          return again(step.do === 'arm' ? 0 : staleMs);
        case 'erase':
          if (content) await deleteObject(api, volumeSnapshotContents, content, signal);
          return again(staleMs);
        case 'release':
          if (content && step.first) await write(content, step.first);
          if (content && step.keeps) {
            const message = `its data stays as VolumeSnapshotContent ${content.metadata.name}: no order to delete it came with the deletion`;
            events.emit(snapshot, 'Normal', 'DataRetained', message);
          }
          await dropFinalizer(api, volumeSnapshots, snapshot, guestSnapshot.finalizer, signal);
          return settled;
        default:
          return unreachable(step);
      }
    }

    function write(of: VolumeSnapshotContent, patch: unknown) {
      return api.mergePatch(volumeSnapshotContents, refOf(of), patch, { answer: 'metadata' }, signal);
    }
  }

  return createController(
    {
      name: 'guest-snapshot',
      watches: [watch(snapshots, (snapshot) => [keyOf(snapshot)]), watch(contents, ofContent)],
      reconcile,
    },
    deps,
  );
}
