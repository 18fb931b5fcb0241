/** What must hold when everything has come to rest. */
import { amountOf } from '#agent/storage/model/claims.ts';
import { persistentVolumeClaims, persistentVolumes, pods, secrets, services } from '#shared/domain/core-kinds.ts';
import { storageNamespace } from '#shared/domain/storage-keys.ts';
import { retainedVolumes } from '#shared/schema/isthmus/retained-volume.ts';
import { volumeMoves } from '#shared/schema/isthmus/volume-move.ts';
import { consumer, shop, shopThere } from './names.ts';
import type { App } from './played.ts';
import type { StorageWorld } from './world.ts';

export const describe = (world: StorageWorld, app: App): string =>
  JSON.stringify([
    world.home.pod(shop, app.pod)?.status,
    world.claim(app)?.metadata,
    world.claim(app)?.status,
    world.move(app)?.status,
  ]);

/** What has neither an owner nor a record, and what moves have left. */
export function leftovers(world: StorageWorld): string[] {
  const out: string[] = [];
  const { home } = world;
  const moves = home.store.all(volumeMoves);
  const inUse = new Set<string | undefined>(
    moves.flatMap(({ status }) => (status?.phase === 'Undoable' ? [status.from?.volume] : [])),
  );
  const backed = new Set<string>();
  for (const volume of home.store.all(persistentVolumes)) {
    const { name, annotations, deletionTimestamp } = volume.metadata;
    if (annotations?.['pv.kubernetes.io/provisioned-by'] !== 'liqo.io/storage') continue;
    const { claimRef, csi } = volume.spec ?? {};
    const isBound =
      home.claim(claimRef?.namespace, claimRef?.name ?? '')?.metadata.uid === claimRef?.uid &&
      claimRef?.uid !== undefined;
    const isRecord = inUse.has(name) || world.retained.has(name);
    if ((!isBound && !isRecord) || deletionTimestamp !== undefined)
      out.push(`PersistentVolume ${name} (${volume.status?.phase}) has neither a claim nor a move`);
    backed.add(
      csi?.driver === 'storage.isthmus.dev'
        ? csi.volumeHandle
        : `${consumer}/${storageNamespace}/${name.slice('pvc-'.length)}`,
    );
  }
  for (const cluster of world.clusters) {
    const { name, store, disks } = cluster;
    const namespace = name === consumer ? storageNamespace : shopThere;
    for (const claim of store.all(persistentVolumeClaims))
      if (claim.metadata.namespace === namespace && !backed.has(`${name}/${namespace}/${claim.metadata.name}`))
        out.push(`claim ${claim.metadata.name} of ${name} stands for nothing`);
    for (const { id } of disks.values()) {
      const volume = store
        .all(persistentVolumes)
        .find(({ spec, metadata }) => spec?.csi?.volumeHandle === id && metadata.name.startsWith('disk-'));
      const { claimRef } = volume?.spec ?? {};
      const isBound = cluster.claim(claimRef?.namespace, claimRef?.name ?? '')?.metadata.uid === claimRef?.uid;
      const isKept = store.now(retainedVolumes, { name: volume?.metadata.name ?? '' }) !== undefined;
      if (!isBound && !isKept) out.push(`disk ${id} of ${name} has neither a claim nor a record`);
    }
  }
  const made = [secrets, services, pods, persistentVolumeClaims].flatMap((kind) => home.store.all(kind as typeof pods));
  for (const { kind, metadata } of made)
    if (metadata.name.startsWith('move-')) out.push(`${kind} ${metadata.name} is left of a move`);
  for (const app of world.apps.values()) {
    const claim = world.claim(app);
    if (claim?.metadata.annotations?.['isthmus.dev/volume-move'] !== undefined)
      out.push(`claim ${app.claim} still says that it moves`);
    const said = (claim?.status?.conditions ?? []).map(({ type }) => type);
    const turns = Object.values(claim?.status?.allocatedResourceStatuses ?? {});
    if (said.length + turns.length > 0)
      out.push(`claim ${app.claim} awaits nothing, and says ${[...said, ...turns].join()}`);
    const [has, asks, wanted] = [claim?.status?.capacity, claim?.spec?.resources?.requests, { storage: app.size }].map(
      amountOf,
    ) as [bigint, bigint, bigint];
    const bound = home.volume(claim?.spec?.volumeName);
    const policy = world.retained.has(bound?.metadata.name ?? '') ? 'Retain' : 'Delete';
    if (bound?.spec?.persistentVolumeReclaimPolicy !== policy)
      out.push(`volume ${bound?.metadata.name} of claim ${app.claim} was to have the policy ${policy}`);
    const room = amountOf(bound?.spec?.capacity);
    // The volume that a claim gets back may be smaller than the one that it had meanwhile.
    if (has < asks || (asks < wanted && room >= wanted))
      out.push(`claim ${app.claim} was to have ${app.size}: ${describe(world, app)}`);
  }
  return out;
}
