/** Keeps volumes of ours in step with the real claims behind them, in this cluster or at a provider, until their reclaim policy ends them. */
import { peerOf, virtualNodeNodes } from '#agent/model/peering-selections.ts';
import { createReportWait } from '#agent/runtime/wait-events.ts';
import type { Cluster, Controller, KubeApi } from '#kube/model/types.ts';
import { type ControllerDeps, createController, watch } from '#kube/run/controller.ts';
import { deleteObject, dropFinalizer } from '#kube/writes/write-if-changed.ts';
import {
  type PersistentVolume,
  type PersistentVolumeClaim,
  persistentVolumeClaims,
  persistentVolumes,
} from '#shared/domain/core-kinds.ts';
import { guestVolume } from '#shared/domain/guest-volume-keys.ts';
import { type Node, refOf } from '#shared/domain/kube-object.ts';
import { namespaceOffloadingName } from '#shared/domain/liqo-keys.ts';
import { again, type Outcome, settled, waiting } from '#shared/domain/outcome.ts';
import {
  homeClaimOf,
  type RemoteClaim,
  storageAnnotation,
  storageNamespace,
  volumeFinalizer,
  volumeHandle,
} from '#shared/domain/storage-keys.ts';
import { unreachable } from '#shared/domain/unreachable.ts';
import { isOurVolume, remoteOf } from '#shared/domain/volumes.ts';
import { AppError, codeOf } from '#shared/errors/app-error.ts';
import { foreignClusters } from '#shared/schema/liqo/foreign-cluster.ts';
import { namespaceOffloadings } from '#shared/schema/liqo/namespace-offloading.ts';
import { virtualNodes } from '#shared/schema/liqo/virtual-node.ts';
import { allClaims, allVolumes, claimUidOf, realClaimUids, volumeNameOf } from '../model/claims.ts';
import { peeringEnd } from '../providers/peering-end.ts';
import type { ReachableProviders } from '../providers/reachable-providers.ts';
import { type Action, decide, isFinal, losesData, type Observed, type RealClaim } from './decide.ts';

export interface VolumeDeps extends ControllerDeps {
  readonly cluster: Cluster;
  readonly clusterId: string;
  readonly providers: ReachableProviders;
}

type Claim = PersistentVolumeClaim;

const waitMs = 60_000;
const staleMs = 200;

/** `isFresh`: by the API servers; else by caches, where they have it. */
interface Look {
  readonly isFresh: boolean;
}
const peekAt: Look = { isFresh: false };
const askFor: Look = { isFresh: true };

const isReady = ({ status }: Node): boolean =>
  status?.conditions?.some(({ type, status: value }) => type === 'Ready' && value === 'True') ?? false;

export function createVolumeController(deps: VolumeDeps): Controller {
  const { api, caches, events } = deps.cluster;
  const { providers, clock } = deps;
  const claims = allClaims(caches);
  const volumes = allVolumes(caches);
  const nodeCache = virtualNodeNodes(caches);
  const virtual = caches.cache(virtualNodes);
  const peers = caches.cache(foreignClusters);
  const offloadings = caches.cache(namespaceOffloadings);
  const reportWait = createReportWait(events, clock);

  const ours = ({ metadata, ...rest }: PersistentVolume): string[] =>
    isOurVolume({ metadata, ...rest }) ? [metadata.name] : [];
  const at = (provider: string | undefined): string[] =>
    volumes.list().flatMap((volume) => (remoteOf(volume)?.provider === provider ? ours(volume) : []));
  /** A volume that was moved has another claim than the one that it was made for, so the real claim's own name leads to it. */
  const behind = ({ metadata }: Claim, provider: string | undefined): string[] => {
    const { namespace = '', name } = metadata;
    if (provider === undefined) return [volumeNameOf(name)];
    return volumes.byIndex('handle', volumeHandle({ provider, namespace, name })).map((volume) => volume.metadata.name);
  };

  const controller = createController(
    {
      name: 'volume',
      workers: 8,
      watches: [
        watch(volumes, (volume) => {
          if (isOurVolume(volume)) return [volume.metadata.name];
          const { namespace, name } = volume.spec?.claimRef ?? {};
          return namespace === storageNamespace && name ? [volumeNameOf(name)] : [];
        }),
        watch(claims, (claim) => {
          if (claim.metadata.namespace === storageNamespace) return behind(claim, undefined);
          const bound = volumes.get({ name: claim.spec?.volumeName ?? '' });
          return bound ? ours(bound) : [];
        }),
        watch(nodeCache, (node) => at(peerOf(node))),
        watch(virtual, ({ spec }) => at(spec.clusterID)),
        watch(peers, ({ spec }) => at(spec.clusterID)),
      ],
      reconcile,
    },
    deps,
  );

  async function reconcile(key: string, signal: AbortSignal): Promise<Outcome> {
    const known = volumes.get({ name: key });
    if (!known || !isOurVolume(known)) return settled;
    let observed = await observe(known, peekAt, signal);
    let actions = decide(observed);
    if (actions.some(isFinal)) {
      // Watches may lag: what cannot be taken back is decided once more, by what the API servers say now.
      const volume = await api.get(persistentVolumes, { name: key }, signal);
      if (!volume || volume.metadata.uid !== known.metadata.uid) return settled;
      observed = await observe(volume, askFor, signal);
      actions = decide(observed);
    }
    const { volume, home } = observed;
    const remote = remoteOf(volume);
    const subject = { volume, home, to: remote ? providers.of(remote.provider)?.api : api };
    for (const action of actions) {
      const outcome = await perform(action, subject, signal);
      if (outcome.kind !== 'settled') return reportWait(home ?? volume, outcome);
    }
    return settled;
  }

  async function observe(volume: PersistentVolume, look: Look, signal: AbortSignal): Promise<Observed> {
    const { claimRef } = volume.spec ?? {};
    const found = claims.get({ namespace: claimRef?.namespace ?? '', name: claimRef?.name ?? '' });
    const home = found?.metadata.uid === claimRef?.uid ? found : undefined;
    const remote = remoteOf(volume);
    const real = remote
      ? await realAt(remote, claimRef?.namespace ?? '', realClaimUids(volume), look, signal)
      : await realHere(volume.metadata.name, look, signal);
    const behindIt = !remote && real.kind === 'there' ? real.object.spec?.volumeName : undefined;
    const source = behindIt ? volumes.get({ name: behindIt }) : undefined;
    const nodes = nodeCache.list().filter((node) => peerOf(node) === remote?.provider);
    const isLiqoctlMoving = losesData(volume) && (await liqoctlMoves(claimRef?.namespace, look, signal));
    return { volume, home, real, source, reachable: nodes.some(isReady), isLiqoctlMoving, nowMs: clock.now() };
  }

  /** `liqoctl move volume` offloads the namespace of real claims for as long as it works, and has its copy there in a claim that nothing needs any more. */
  async function liqoctlMoves(namespace: string | undefined, look: Look, signal: AbortSignal): Promise<boolean> {
    if (namespace === storageNamespace) return false;
    const ref = { namespace: storageNamespace, name: namespaceOffloadingName };
    return (look.isFresh ? await api.get(namespaceOffloadings, ref, signal) : offloadings.get(ref)) !== undefined;
  }

  async function realHere(name: string, look: Look, signal: AbortSignal): Promise<RealClaim> {
    const ref = { namespace: storageNamespace, name: claimUidOf(name) };
    const object = (look.isFresh ? undefined : claims.get(ref)) ?? (await api.get(persistentVolumeClaims, ref, signal));
    return object ? { kind: 'there', object } : { kind: 'gone', why: `there is no claim ${ref.namespace}/${ref.name}` };
  }

  async function realAt(
    at: RemoteClaim,
    local: string,
    whom: readonly string[],
    look: Look,
    signal: AbortSignal,
  ): Promise<RealClaim> {
    const { provider, namespace, name } = at;
    const over = peeringEnd(provider, peers, virtual);
    if (over !== undefined) return { kind: 'gone', why: over, kept: true };
    const reach = providers.reach(at, local);
    if (reach.kind === 'unknown') return { kind: 'unknown', why: reach.on };
    if (reach.kind === 'unreachable')
      return { kind: 'gone', why: `${reach.why}, which keeps the data of its claims`, kept: true };
    const { peer } = reach;
    const object = look.isFresh
      ? await peer.api.get(persistentVolumeClaims, { namespace, name }, signal)
      : await peer.find(local, { namespace, name }, whom, signal);
    const home = homeClaimOf(object?.metadata.annotations);
    if (object && home && whom.includes(home.uid)) return { kind: 'there', object };
    return { kind: 'gone', why: object ? 'another claim has its name' : `cluster ${provider} does not have it` };
  }

  interface Subject {
    readonly volume: PersistentVolume;
    readonly home: Claim | undefined;
    /** Where the real claim is. */
    readonly to: KubeApi | undefined;
  }

  async function perform(action: Action, { volume, home, to }: Subject, signal: AbortSignal): Promise<Outcome> {
    switch (action.do) {
      case 'wait':
        return waiting(action.on, waitMs);
      case 'tell':
        events.emit(home ?? volume, action.type, action.reason, action.message);
        return settled;
      case 'mark': {
        const { uid, resourceVersion } = action.claim.metadata;
        // An order to delete data is for the claim as it was read.
        const metadata = { uid, ...(isFinal(action) && { resourceVersion }), annotations: action.annotations };
        return tolerant(() =>
          to?.mergePatch(persistentVolumeClaims, refOf(action.claim), { metadata }, { answer: 'metadata' }, signal),
        );
      }
      case 'guard': {
        const { uid, resourceVersion, finalizers = [] } = action.claim.metadata;
        const labels = { [guestVolume.label]: deps.clusterId };
        const metadata = { uid, resourceVersion, labels, finalizers: [...finalizers, guestVolume.finalizer] };
        return tolerant(() =>
          api.mergePatch(persistentVolumeClaims, refOf(action.claim), { metadata }, { answer: 'metadata' }, signal),
        );
      }
      case 'erase':
        await (to && deleteObject(to, persistentVolumeClaims, action.claim, signal));
        return again(staleMs);
      case 'hand-over': {
        const { uid, resourceVersion } = volume.metadata;
        const metadata = { uid, resourceVersion, annotations: { [storageAnnotation.handedOver]: action.why } };
        const patch = { metadata, spec: { persistentVolumeReclaimPolicy: 'Retain' } };
        return tolerant(() => api.mergePatch(persistentVolumes, refOf(volume), patch, { answer: 'metadata' }, signal));
      }
      case 'delete':
        await deleteObject(api, persistentVolumes, volume, signal);
        return settled;
      case 'finish':
        await deleteObject(api, persistentVolumes, volume, signal);
        return release(volume, signal);
      case 'release':
        return release(volume, signal);
      case 'hold': {
        const { resourceVersion, finalizers = [] } = volume.metadata;
        const metadata = { resourceVersion, finalizers: [...finalizers, volumeFinalizer] };
        return tolerant(() =>
          api.mergePatch(persistentVolumes, refOf(volume), { metadata }, { answer: 'metadata' }, signal),
        );
      }
      case 'note': {
        const metadata = { uid: volume.metadata.uid, annotations: action.annotations };
        return tolerant(() =>
          api.mergePatch(persistentVolumes, refOf(volume), { metadata }, { answer: 'metadata' }, signal),
        );
      }
      case 'grow':
        return grow(action, { volume, home, to }, signal);
      case 'capacity':
        return tolerant(() =>
          api.mergePatch(
            persistentVolumes,
            refOf(volume),
            { spec: { capacity: { storage: action.storage } } },
            { answer: 'metadata' },
            signal,
          ),
        );
      case 'status':
        return home ? status(home, action.patch, signal) : settled;
      default:
        return unreachable(action);
    }
  }

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

  async function release({ metadata }: PersistentVolume, signal: AbortSignal): Promise<Outcome> {
    const now = await api.get(persistentVolumes, { name: metadata.name }, signal);
    if (now && now.metadata.uid === metadata.uid)
      return tolerant(() => dropFinalizer(api, persistentVolumes, now, volumeFinalizer, signal));
    return settled;
  }

  async function grow(
    { claim, storage }: Extract<Action, { do: 'grow' }>,
    { home, to }: Subject,
    signal: AbortSignal,
  ): Promise<Outcome> {
    const patch = { metadata: { uid: claim.metadata.uid }, spec: { resources: { requests: { storage } } } };
    try {
      await to?.mergePatch(persistentVolumeClaims, refOf(claim), patch, { answer: 'metadata' }, signal);
      return settled;
    } catch (error) {
      if (!(error instanceof AppError) || !['kube_forbidden', 'kube_invalid'].includes(error.code)) throw error;
      const message = `claim ${claim.metadata.namespace}/${claim.metadata.name} was not allowed to ask for ${storage}: ${error.message}`;
      if (home) events.emit(home, 'Warning', 'VolumeResizeFailed', message);
      return waiting(message, waitMs);
    }
  }

  async function status(home: Claim, patch: Readonly<Record<string, unknown>>, signal: AbortSignal): Promise<Outcome> {
    const { uid, resourceVersion } = home.metadata;
    const body = { metadata: { uid, resourceVersion }, status: patch };
    return tolerant(() =>
      api.mergePatch(persistentVolumeClaims, refOf(home), body, { subresource: 'status', answer: 'metadata' }, signal),
    );
  }

  return {
    ...controller,
    async run(signal) {
      const look = (keys: readonly string[]): void => {
        for (const key of keys) controller.enqueue(key);
      };
      const unsubscribe = providers.subscribe({
        claim: (claim, provider) => look(behind(claim, provider)),
        moved: (provider) => look(at(provider)),
      });
      try {
        await controller.run(signal);
      } finally {
        unsubscribe();
      }
    },
  };
}
