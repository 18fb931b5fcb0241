/**
 * Kubernetes' snapshot controller and the snapshotter of the driver of `provisionVolumes`, played for tests that have an API server and no node: what the
 * real ones write, in their order.
 */
import { readFile } from 'node:fs/promises';
import path from 'node:path';
import { parse } from 'yaml';
import type { Cluster } from '#kube/model/types.ts';
import { createUnlessThere } from '#kube/writes/write-if-changed.ts';
import {
  customResourceDefinitions,
  type PersistentVolume,
  persistentVolumeClaims,
  persistentVolumes,
} from '#shared/domain/core-kinds.ts';
import { type KubeObject, keyOf, type ObjectRef, type ResourceType, refOf } from '#shared/domain/kube-object.ts';
import {
  beingDeleted,
  contentFinalizer,
  contentNameOf,
  snapshotControllerPrefix,
  type VolumeSnapshot,
  type VolumeSnapshotContent,
  volumeSnapshotClasses,
  volumeSnapshotContents,
  volumeSnapshots,
} from '#shared/domain/snapshot-kinds.ts';
import { codeOf } from '#shared/errors/app-error.ts';
import { snapshotDefinitionsFolder } from '#test/testbed/build.ts';
import { eventually } from './eventually.ts';
import { recordsDriver } from './volume-provisioner.ts';

const boundFinalizer = `${snapshotControllerPrefix}volumesnapshot-bound-protection`;
const sourceFinalizer = `${snapshotControllerPrefix}volumesnapshot-as-source-protection`;

/** The definitions of external-snapshotter itself. Resolves when the kinds are served. */
export async function installSnapshotKinds({ api }: Pick<Cluster, 'api'>): Promise<void> {
  const folder = await snapshotDefinitionsFolder();
  for (const { plural } of [volumeSnapshots, volumeSnapshotContents, volumeSnapshotClasses]) {
    const text = await readFile(path.join(folder, `snapshot.storage.k8s.io_${plural}.yaml`), 'utf8');
    await createUnlessThere(api, customResourceDefinitions, parse(text), AbortSignal.timeout(60_000));
  }
  await eventually('the kinds of snapshots', async () => {
    await Promise.all([api.list(volumeSnapshots), api.list(volumeSnapshotContents), api.list(volumeSnapshotClasses)]);
    return true;
  });
}

export interface PlayedSnapshots {
  /** Handles of the snapshots that the driver has, with the volume that each was taken of. */
  readonly data: ReadonlyMap<string, string>;
  /** False: the driver takes none, as when its disks are full. */
  takes: boolean;
  /** The handle behind a VolumeSnapshot that is ready to use. */
  handleOf(ref: ObjectRef): Promise<string | undefined>;
  stop(): Promise<void>;
}

const volumeHandleOf = ({ spec }: PersistentVolume): string | undefined => spec?.csi?.volumeHandle;

/** Begins with the default VolumeSnapshotClass `records` of the driver, if told. The kinds have to be served. */
export async function playSnapshotController(
  { api, caches }: Pick<Cluster, 'api' | 'caches'>,
  {
    className = 'records',
    deletionPolicy = 'Delete',
  }: { readonly className?: string; readonly deletionPolicy?: 'Delete' | 'Retain' } = {},
): Promise<PlayedSnapshots> {
  await api.create(volumeSnapshotClasses, {
    apiVersion: 'snapshot.storage.k8s.io/v1',
    kind: 'VolumeSnapshotClass',
    metadata: { name: className, annotations: { 'snapshot.storage.kubernetes.io/is-default-class': 'true' } },
    driver: recordsDriver,
    deletionPolicy,
  });
  const data = new Map<string, string>();
  const snapshots = caches.cache(volumeSnapshots);
  const contents = caches.cache(volumeSnapshotContents);
  const claims = caches.cache(persistentVolumeClaims);
  let chain: Promise<unknown> = Promise.resolve();
  let isStopped = false;

  /** One after the other; what failed by a change is looked at again by the event of that change. */
  const next = (work: () => Promise<unknown>): void => {
    chain = chain.then(async () => {
      if (isStopped) return;
      try {
        await work();
      } catch (error) {
        const code = codeOf(error);
        if (!['kube_conflict', 'kube_not_found', 'kube_already_exists'].includes(code ?? '')) throw error;
      }
    });
  };

  const setFinalizers = <T extends KubeObject>(type: ResourceType<T>, object: T, finalizers: readonly string[]) =>
    api.mergePatch(type, refOf(object), {
      metadata: { resourceVersion: object.metadata.resourceVersion, finalizers },
    });
  const status = <T extends KubeObject>(type: ResourceType<T>, object: T, said: unknown) =>
    api.mergePatch(type, refOf(object), { status: said }, { subresource: 'status' });

  async function volumeOf({ metadata, spec }: VolumeSnapshot): Promise<PersistentVolume | undefined> {
    const name = spec.source?.persistentVolumeClaimName;
    const claim = name
      ? await api.get(persistentVolumeClaims, { namespace: metadata.namespace ?? '', name })
      : undefined;
    return claim?.status?.phase === 'Bound'
      ? api.get(persistentVolumes, { name: claim.spec?.volumeName ?? '' })
      : undefined;
  }

  async function syncSnapshot(known: VolumeSnapshot): Promise<void> {
    const object = await api.get(volumeSnapshots, refOf(known));
    if (object === undefined) return;
    const { metadata, spec } = object;
    const named = spec.source?.volumeSnapshotContentName;
    const name = object.status?.boundVolumeSnapshotContentName ?? named ?? contentNameOf(metadata.uid ?? '');
    const content = await api.get(volumeSnapshotContents, { name });
    if (metadata.deletionTimestamp !== undefined) return endSnapshot(object, content);
    const wanted = [sourceFinalizer, ...(content ? [boundFinalizer] : [])];
    const { finalizers = [] } = metadata;
    const missing = wanted.filter((one) => !finalizers.includes(one));
    if (missing.length > 0) {
      await setFinalizers(volumeSnapshots, object, [...finalizers, ...missing]);
      return;
    }
    if (named === undefined && content === undefined) return createContent(object);
    if (content === undefined) return;
    if (named !== undefined && content.spec.volumeSnapshotRef.uid === undefined) {
      const patch = { spec: { volumeSnapshotRef: { uid: metadata.uid } } };
      await api.mergePatch(volumeSnapshotContents, refOf(content), patch);
      return;
    }
    if (content.spec.volumeSnapshotRef.uid !== metadata.uid || object.status?.readyToUse) return;
    const { readyToUse = false, creationTime, restoreSize, error } = content.status ?? {};
    const said = {
      boundVolumeSnapshotContentName: name,
      readyToUse,
      ...(creationTime !== undefined && { creationTime: new Date(creationTime / 1e6).toISOString() }),
      ...(restoreSize !== undefined && { restoreSize: String(restoreSize) }),
      error: readyToUse ? null : (error ?? null),
    };
    const before = object.status;
    const isSaid =
      before?.boundVolumeSnapshotContentName === name &&
      before.readyToUse === readyToUse &&
      before.error?.message === error?.message;
    if (!isSaid) await status(volumeSnapshots, object, said);
  }

  async function createContent(object: VolumeSnapshot): Promise<void> {
    const { namespace = '', name, uid = '' } = object.metadata;
    const volume = await volumeOf(object);
    const fail = async (message: string): Promise<void> => {
      if (object.status?.error?.message !== message)
        await status(volumeSnapshots, object, { readyToUse: false, error: { message } });
      setTimeout(() => next(() => syncSnapshot(object)), 200);
    };
    const driver = volume?.spec?.csi?.driver;
    if (driver === undefined) return fail('the claim has no volume of a CSI driver');
    const asked = object.spec.volumeSnapshotClassName;
    const found = (await api.list(volumeSnapshotClasses)).find(({ metadata, driver: of }) =>
      asked === undefined
        ? of === driver && metadata.annotations?.['snapshot.storage.kubernetes.io/is-default-class'] === 'true'
        : metadata.name === asked,
    );
    if (found === undefined) return fail('cannot find default snapshot class');
    if (asked === undefined) {
      const patch = { spec: { volumeSnapshotClassName: found.metadata.name } };
      await api.mergePatch(volumeSnapshots, refOf(object), patch);
    }
    await api.create(volumeSnapshotContents, {
      apiVersion: 'snapshot.storage.k8s.io/v1',
      kind: 'VolumeSnapshotContent',
      metadata: { name: contentNameOf(uid) },
      spec: {
        deletionPolicy: found.deletionPolicy,
        driver: found.driver,
        source: { volumeHandle: (volume && volumeHandleOf(volume)) ?? '' },
        sourceVolumeMode: volume?.spec?.volumeMode ?? 'Filesystem',
        volumeSnapshotClassName: found.metadata.name,
        volumeSnapshotRef: { kind: 'VolumeSnapshot', namespace, name, uid } as never,
      },
    });
  }

  async function endSnapshot(object: VolumeSnapshot, content: VolumeSnapshotContent | undefined): Promise<void> {
    const { finalizers = [], namespace, name, uid } = object.metadata;
    if (!finalizers.some((one) => one === sourceFinalizer || one === boundFinalizer)) return;
    const isSource = claims
      .list()
      .some(
        ({ metadata, spec, status: { phase } = {} }) =>
          metadata.namespace === namespace &&
          spec?.dataSource?.kind === 'VolumeSnapshot' &&
          spec.dataSource.name === name &&
          phase === 'Pending',
      );
    if (isSource) {
      setTimeout(() => next(() => syncSnapshot(object)), 200);
      return;
    }
    const own = content?.spec.volumeSnapshotRef.uid === uid ? content : undefined;
    if (own && own.metadata.annotations?.[beingDeleted] === undefined)
      await api.mergePatch(volumeSnapshotContents, refOf(own), {
        metadata: { annotations: { [beingDeleted]: 'yes' } },
      });
    const takesAlong = own?.spec.deletionPolicy === 'Delete';
    if (own && takesAlong) await api.delete(volumeSnapshotContents, refOf(own));
    const left = finalizers.filter((one) => one !== sourceFinalizer && (takesAlong || one !== boundFinalizer));
    if (left.length !== finalizers.length) await setFinalizers(volumeSnapshots, object, left);
  }

  async function syncContent(known: VolumeSnapshotContent): Promise<void> {
    const content = await api.get(volumeSnapshotContents, refOf(known));
    if (content === undefined) return;
    const { metadata, spec } = content;
    const { namespace = '', name = '', uid } = spec.volumeSnapshotRef;
    const { finalizers = [] } = metadata;
    if (uid !== undefined && metadata.deletionTimestamp === undefined && !finalizers.includes(contentFinalizer)) {
      await setFinalizers(volumeSnapshotContents, content, [...finalizers, contentFinalizer]);
      return;
    }
    if (spec.driver === recordsDriver) await syncOfDriver(content);
    const of = await api.get(volumeSnapshots, { namespace, name });
    if (of) await syncSnapshot(of);
  }

  /** As csi-snapshotter. */
  async function syncOfDriver(content: VolumeSnapshotContent): Promise<void> {
    const { metadata, spec } = content;
    const { finalizers = [] } = metadata;
    if (metadata.deletionTimestamp !== undefined) {
      const isToGo =
        (spec.source.snapshotHandle && !spec.volumeSnapshotRef.uid) || metadata.annotations?.[beingDeleted];
      if (!isToGo || !finalizers.includes(contentFinalizer)) return;
      const handle = content.status?.snapshotHandle;
      if (spec.deletionPolicy === 'Delete' && handle) data.delete(handle);
      const left = finalizers.filter((one) => one !== contentFinalizer);
      await setFinalizers(volumeSnapshotContents, content, left);
      return;
    }
    if (content.status?.readyToUse || !played.takes) return;
    const volume = spec.source.volumeHandle;
    const handle = spec.source.snapshotHandle ?? `taken-${metadata.uid}`;
    if (volume !== undefined) data.set(handle, volume);
    if (!data.has(handle)) return;
    const size = (await api.list(persistentVolumes)).find((one) => volumeHandleOf(one) === data.get(handle));
    await status(volumeSnapshotContents, content, {
      snapshotHandle: handle,
      readyToUse: true,
      creationTime: Math.floor(Date.now() / 1000) * 1e9,
      ...(size && { restoreSize: 2 ** 30 }),
    });
  }

  const played: PlayedSnapshots = {
    data,
    takes: true,
    async handleOf(ref) {
      const object = await api.get(volumeSnapshots, ref);
      const name = object?.status?.readyToUse ? object.status.boundVolumeSnapshotContentName : undefined;
      const content = name ? await api.get(volumeSnapshotContents, { name }) : undefined;
      const handle = content?.spec.driver === recordsDriver ? content.status?.snapshotHandle : undefined;
      return handle !== undefined && data.has(handle) ? handle : undefined;
    },
    async stop() {
      for (const unsubscribe of subscriptions) unsubscribe();
      await chain;
      isStopped = true;
    },
  };
  const subscriptions = [
    snapshots.subscribe(({ after }) => after && next(() => syncSnapshot(after))),
    contents.subscribe(({ after, before }) => {
      if (after) next(() => syncContent(after));
      const gone = after === undefined ? before : undefined;
      const { namespace = '', name = '' } = gone?.spec.volumeSnapshotRef ?? {};
      if (gone)
        next(async () => {
          const of = await api.get(volumeSnapshots, { namespace, name });
          if (of) await syncSnapshot(of);
        });
    }),
    claims.subscribe(({ after }) => {
      const { apiGroup, name } = after?.spec?.dataSource ?? {};
      const of = snapshots.list().find((one) => apiGroup && keyOf(one) === `${after?.metadata.namespace}/${name}`);
      if (of) next(() => syncSnapshot(of));
    }),
  ];
  return played;
}
