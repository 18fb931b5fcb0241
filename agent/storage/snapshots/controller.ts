/** Takes, follows and deletes snapshots of volumes at providers, and ends what lent a snapshot of this cluster to a real claim. */

import { getIfServed, isUnserved } from '#kube/model/optional-kind.ts';
import type { Cluster, Controller } from '#kube/model/types.ts';
import { type ControllerDeps, createController, watch } from '#kube/run/controller.ts';
import { whenServed } from '#kube/run/when-served.ts';
import { deleteObject, dropFinalizer } from '#kube/writes/write-if-changed.ts';
import { persistentVolumeClaims, persistentVolumes } from '#shared/domain/core-kinds.ts';
import { refOf } from '#shared/domain/kube-object.ts';
import { label } from '#shared/domain/liqo-keys.ts';
import { again, type Outcome, settled, waiting } from '#shared/domain/outcome.ts';
import {
  importLabel,
  type RemoteSnapshot,
  remoteSnapshotName,
  remoteSnapshotOf,
  snapshotAnnotations,
} from '#shared/domain/snapshot-keys.ts';
import {
  contentFinalizer,
  type VolumeSnapshotContent,
  volumeSnapshotClasses,
  volumeSnapshotContents,
  volumeSnapshots,
} from '#shared/domain/snapshot-kinds.ts';
import {
  homeClaimOf,
  remoteVolumeDriver,
  storageAnnotation,
  storageData,
  storageNamespace,
  volumeHandle,
} from '#shared/domain/storage-keys.ts';
import { unreachable } from '#shared/domain/unreachable.ts';
import { AppError, codeOf } from '#shared/errors/app-error.ts';
import { foreignClusters } from '#shared/schema/liqo/foreign-cluster.ts';
import { virtualNodes } from '#shared/schema/liqo/virtual-node.ts';
import { allClaims, allVolumes, realClaimUids } from '../model/claims.ts';
import { peeringEnd } from '../providers/peering-end.ts';
import type { ReachableProviders } from '../providers/reachable-providers.ts';
import type { RemoteClaims } from '../providers/remote-claims.ts';
import {
  type Action,
  decide,
  failing,
  isFinal,
  nextLookMs,
  type Observed,
  placeOf,
  type Source,
  type Taken,
} from './decide.ts';
import { claimUidOfImport, decideImport, importContentName } from './imports.ts';

export interface SnapshotDeps extends ControllerDeps {
  readonly cluster: Cluster;
  readonly clusterId: string;
  readonly providers: ReachableProviders;
}

type Content = VolumeSnapshotContent;

const staleMs = 200;
const isImport = ({ metadata }: Content): boolean =>
  metadata.labels?.[importLabel] !== undefined && claimUidOfImport(metadata.name) !== undefined;

/** Begins once the kinds of snapshots are installed in this cluster. */
export const createSnapshotController = (deps: SnapshotDeps): Controller =>
  whenServed(
    {
      name: 'volume-snapshot',
      api: deps.cluster.api,
      types: [volumeSnapshots, volumeSnapshotContents],
      create: () => createServed(deps),
    },
    deps,
  );

function createServed(deps: SnapshotDeps): Controller {
  const { api, caches, events } = deps.cluster;
  const { providers, clock, clusterId } = deps;
  const contents = caches.cache(volumeSnapshotContents);
  const lent = caches.cache(volumeSnapshots, { namespace: storageNamespace });
  const claims = allClaims(caches);
  const volumes = allVolumes(caches);
  const virtual = caches.cache(virtualNodes);
  const peers = caches.cache(foreignClusters);

  const isOurs = (content: Content): boolean => content.spec.driver === remoteVolumeDriver || isImport(content);
  const place = (content: Content): RemoteSnapshot | undefined => placeOf(content, remoteSnapshotName);
  const at = (provider: string): string[] =>
    contents
      .list()
      .filter((content) => isOurs(content) && place(content)?.provider === provider)
      .map(({ metadata }) => metadata.name);

  const controller = createController(
    {
      name: 'volume-snapshot',
      workers: 4,
      watches: [
        watch(contents, (content) => (isOurs(content) ? [content.metadata.name] : [])),
        watch(lent, ({ metadata }) => [importContentName(metadata.name)]),
        watch(claims, ({ metadata }) => {
          const name = importContentName(metadata.uid ?? '');
          return contents.get({ name }) ? [name] : [];
        }),
        watch(virtual, ({ spec }) => at(spec.clusterID)),
        watch(peers, ({ spec }) => at(spec.clusterID)),
      ],
      reconcile,
    },
    deps,
  );

  async function reconcile(name: string, signal: AbortSignal): Promise<Outcome> {
    const known = contents.get({ name });
    const uid = claimUidOfImport(name);
    const isLent = uid !== undefined && lent.get({ namespace: storageNamespace, name: uid }) !== undefined;
    if (uid !== undefined && (known ? isImport(known) : isLent)) return endImport(name, uid, signal);
    if (known === undefined || !isOurs(known)) return settled;
    let observed = await observe(known, signal);
    let actions = decide(observed);
    if (actions.some(isFinal)) {
      // Watches may lag: what cannot be taken back is decided once more, by what the API servers say now.
      const now = await api.get(volumeSnapshotContents, { name }, signal);
      if (now === undefined || now.metadata.uid !== known.metadata.uid) return settled;
      observed = await observe(now, signal);
      actions = decide(observed);
    }
    for (const action of actions) {
      const outcome = await perform(action, observed, signal);
      if (outcome.kind !== 'settled') return outcome;
    }
    return settled;
  }

  async function observe(content: Content, signal: AbortSignal): Promise<Observed> {
    const where = place(content);
    const facts = { content, at: where, nowMs: clock.now() };
    if (where === undefined) return { ...facts, taken: { kind: 'absent' } };
    const over = peeringEnd(where.provider, peers, virtual);
    if (over !== undefined) return { ...facts, taken: { kind: 'over', why: over } };
    const local = content.spec.volumeSnapshotRef.namespace ?? '';
    const reach = providers.reach(where, local);
    if (reach.kind === 'unknown') return { ...facts, taken: { kind: 'unknown', on: reach.on } };
    if (reach.kind === 'unreachable')
      return { ...facts, taken: { kind: 'over', why: `${reach.why}, which keeps its snapshots` } };
    const taken = await takenAt(where, reach.peer, signal);
    const isNew = taken.kind === 'absent' && content.metadata.deletionTimestamp === undefined;
    return { ...facts, taken, ...(isNew && { source: await sourceOf(content, reach.peer, signal) }) };
  }

  async function takenAt(
    { provider, namespace, name }: RemoteSnapshot,
    peer: RemoteClaims,
    signal: AbortSignal,
  ): Promise<Taken> {
    try {
      const object = await getIfServed(peer.api, volumeSnapshots, { namespace, name }, signal);
      return object ? { kind: 'there', object } : { kind: 'absent' };
    } catch (error) {
      if (codeOf(error) !== 'kube_forbidden') throw error;
      return { kind: 'forbidden', why: `the right to VolumeSnapshots at cluster ${provider}, which gives none` };
    }
  }

  /** What is known here of the volume, and there of the claim behind it. */
  async function sourceOf({ spec }: Content, peer: RemoteClaims, signal: AbortSignal): Promise<Source> {
    const name = spec.volumeSnapshotClassName;
    const found = name ? await getIfServed(api, volumeSnapshotClasses, { name }, signal) : undefined;
    const parameters = Object.keys(found?.parameters ?? {});
    if (parameters.length > 0)
      return {
        kind: 'refused',
        why: `parameters of VolumeSnapshotClass ${name} has ${parameters.sort().join(', ')}: accepted are none; they belong to the class of the cluster that has the volume`,
      };
    const handle = spec.source.volumeHandle ?? '';
    const claim = remoteSnapshotOf(handle);
    const cached = volumes.byIndex('handle', handle)[0];
    const volume = cached && (await api.get(persistentVolumes, refOf(cached), signal));
    if (claim === undefined || volume === undefined || volume.spec?.csi?.volumeHandle !== handle)
      return { kind: 'refused', why: `this cluster has no PersistentVolume with volumeHandle ${handle}` };
    const real = await peer.api.get(persistentVolumeClaims, { namespace: claim.namespace, name: claim.name }, signal);
    const says = `claim ${claim.namespace}/${claim.name} at cluster ${claim.provider}`;
    const home = homeClaimOf(real?.metadata.annotations);
    if (real === undefined || home === undefined || !realClaimUids(volume).includes(home.uid))
      return { kind: 'refused', why: `${says} is not, or no longer, of PersistentVolume ${volume.metadata.name}` };
    if (real.metadata.deletionTimestamp !== undefined) return { kind: 'refused', why: `${says} is being deleted` };
    return real.status?.phase === 'Bound'
      ? { kind: 'ready', claimName: claim.name }
      : { kind: 'waits', on: `${says} to get its volume: most classes make it when the first pod that uses it starts` };
  }

  async function perform(action: Action, observed: Observed, signal: AbortSignal): Promise<Outcome> {
    const { content, at: where, nowMs } = observed;
    const there = where && providers.of(where.provider)?.api;
    switch (action.do) {
      case 'wait':
        return waiting(action.on, nextLookMs(nowMs - sinceOf(content, nowMs)));
      case 'tell':
        events.emit(content, 'Warning', action.reason, action.message);
        return settled;
      case 'status':
        return writeStatus(content, action.patch, signal);
      case 'take':
        return take(action, observed, signal);
      case 'order': {
        const { uid, resourceVersion } = action.snapshot.metadata;
        const annotations = { [storageAnnotation.data]: storageData.delete };
        const patch = { metadata: { uid, resourceVersion, annotations } };
        return tolerant(() =>
          there?.mergePatch(volumeSnapshots, refOf(action.snapshot), patch, { answer: 'metadata' }, signal),
        );
      }
      case 'erase':
        await (there && deleteObject(there, volumeSnapshots, action.snapshot, signal));
        return again(staleMs);
      case 'release':
        return tolerant(() => dropFinalizer(api, volumeSnapshotContents, content, contentFinalizer, signal));
      default:
        return unreachable(action);
    }
  }

  const sinceOf = ({ metadata }: Content, nowMs: number): number => {
    const ms = Date.parse(metadata.deletionTimestamp ?? metadata.creationTimestamp ?? '');
    return Number.isFinite(ms) ? ms : nowMs;
  };

  const writeStatus = (content: Content, status: Readonly<Record<string, unknown>>, signal: AbortSignal) => {
    const { uid, resourceVersion } = content.metadata;
    const patch = { metadata: { uid, resourceVersion }, status };
    return tolerant(() =>
      api.mergePatch(
        volumeSnapshotContents,
        refOf(content),
        patch,
        { subresource: 'status', answer: 'metadata' },
        signal,
      ),
    );
  };

  /** Gone or changed meanwhile: its event brings the next pass. */
  async function tolerant(write: () => Promise<unknown> | undefined): Promise<Outcome> {
    try {
      await write();
      return settled;
    } catch (error) {
      const code = codeOf(error);
      if (code === 'kube_not_found') return settled;
      if (code === 'kube_conflict') return again(staleMs);
      throw error;
    }
  }

  async function take(
    { at: where, claimName }: Extract<Action, { do: 'take' }>,
    observed: Observed,
    signal: AbortSignal,
  ): Promise<Outcome> {
    const { content, nowMs } = observed;
    const there = providers.of(where.provider)?.api;
    const { namespace = '', name = '', uid = '' } = content.spec.volumeSnapshotRef;
    if (there === undefined) return again(staleMs);
    try {
      await there.create(
        volumeSnapshots,
        {
          apiVersion: 'snapshot.storage.k8s.io/v1',
          kind: 'VolumeSnapshot',
          metadata: {
            namespace: where.namespace,
            name: where.name,
            labels: { [label.origin]: clusterId, [label.destination]: where.provider },
            annotations: snapshotAnnotations({ namespace, name, uid }),
          },
          spec: { source: { persistentVolumeClaimName: claimName } },
        },
        { answer: 'metadata' },
        signal,
      );
      return again(staleMs);
    } catch (error) {
      if (codeOf(error) === 'kube_already_exists') return again(staleMs);
      if (!(error instanceof AppError)) throw error;
      if (!isUnserved(error) && !['kube_invalid', 'kube_forbidden'].includes(error.code)) throw error;
      const why = isUnserved(error) ? 'the kinds of VolumeSnapshots are not installed there' : error.message;
      const message = `cluster ${where.provider} takes no snapshot of claim ${where.namespace}/${claimName}: ${why}`;
      for (const one of failing(observed, message)) await perform(one, observed, signal);
      return waiting(message, nextLookMs(nowMs - sinceOf(content, nowMs)));
    }
  }

  /**
   * `name`: of the content, `uid`: of the claim, and the name of the VolumeSnapshot. A content is made before its VolumeSnapshot, so the VolumeSnapshot
   * is read first: one without a content then has lost it.
   */
  async function endImport(name: string, uid: string, signal: AbortSignal): Promise<Outcome> {
    const snapshot = await api.get(volumeSnapshots, { namespace: storageNamespace, name: uid }, signal);
    const content = await api.get(volumeSnapshotContents, { name }, signal);
    const home = homeClaimOf(content?.metadata.annotations);
    const { namespace = '', name: claimName = '' } = home ?? {};
    const claim = home && (await api.get(persistentVolumeClaims, { namespace, name: claimName }, signal));
    const step = decideImport({ content, claim, snapshot });
    switch (step.do) {
      case 'nothing':
        return settled;
      case 'wait':
        return waiting(step.on, nextLookMs(clock.now() - sinceOf(step.content, clock.now())));
      case 'retain': {
        const { uid: contentUid, resourceVersion } = step.content.metadata;
        const patch = { metadata: { uid: contentUid, resourceVersion }, spec: { deletionPolicy: 'Retain' } };
        await tolerant(() => api.mergePatch(volumeSnapshotContents, refOf(step.content), patch, {}, signal));
        return again(staleMs);
      }
      case 'removeSnapshot':
        await deleteObject(api, volumeSnapshots, step.snapshot, signal);
        return again(staleMs);
      case 'removeContent':
        await deleteObject(api, volumeSnapshotContents, step.content, signal);
        return settled;
      default:
        return unreachable(step);
    }
  }

  return {
    ...controller,
    async run(signal) {
      const unsubscribe = providers.subscribe({
        claim: (claim, provider) => {
          const { namespace = '', name } = claim.metadata;
          const handle = volumeHandle({ provider, namespace, name });
          for (const { metadata, spec, status } of contents.list())
            if (spec.source.volumeHandle === handle && !status?.readyToUse) controller.enqueue(metadata.name);
        },
        moved: (provider) => {
          for (const name of at(provider)) controller.enqueue(name);
        },
      });
      try {
        await controller.run(signal);
      } finally {
        unsubscribe();
      }
    },
  };
}
