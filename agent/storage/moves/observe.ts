/** Reads what a step of a move depends on: from the API servers, not from caches, because each step trusts the one before it to be done. */
import type { Cluster, KubeApi } from '#kube/model/types.ts';
import type { ControllerDeps } from '#kube/run/controller.ts';
import {
  type PersistentVolume,
  type PersistentVolumeClaim,
  persistentVolumeClaims,
  persistentVolumes,
  pods as podKind,
  secrets,
  services,
  storageClasses,
} from '#shared/domain/core-kinds.ts';
import type { Pod } from '#shared/domain/kube-object.ts';
import { fieldManager, namespaceOffloadingName } from '#shared/domain/liqo-keys.ts';
import { moverLabel, type RemoteClaim, storageNamespace } from '#shared/domain/storage-keys.ts';
import { remoteOf } from '#shared/domain/volumes.ts';
import { AppError, codeOf } from '#shared/errors/app-error.ts';
import type { MovePhase, VolumeMove } from '#shared/schema/isthmus/volume-move.ts';
import { namespaceOffloadings } from '#shared/schema/liqo/namespace-offloading.ts';
import { virtualNodes } from '#shared/schema/liqo/virtual-node.ts';
import { remoteClaim } from '../binding/objects.ts';
import { claimUidOf } from '../model/claims.ts';
import type { MoverProgress } from '../mover/pull.ts';
import type { ReachableProviders } from '../providers/reachable-providers.ts';
import type { Facts } from './facts.ts';
import { keysName, moverName, noteOf, serviceName, stagingClaim, stagingName } from './objects.ts';
import { hasEnded, usesClaim } from './pods.ts';
import { isWindowOver, orderOf } from './progress.ts';
import { classFor, refusalOf } from './refusals.ts';

type Claim = PersistentVolumeClaim;

const resting: ReadonlySet<MovePhase> = new Set(['Refused', 'Confirmed', 'Undone', 'Aborted', 'Undoable']);
const frozen: ReadonlySet<MovePhase> = new Set(['Freezing', 'FinalCopy', 'Switching']);

export interface MoveDeps extends ControllerDeps {
  readonly cluster: Cluster;
  readonly clusterId: string;
  readonly providers: ReachableProviders;
  readonly systemNamespace: string;
  /** Of this agent: whose image is that of the pods that copy. */
  readonly podName: string;
}

const needsReal = (facts: Pick<Facts, 'move' | 'nowMs'>): boolean => {
  const phase = facts.move.status?.phase;
  return phase === 'Switching' || phase === 'Discarding' || (phase === 'Undoable' && isWindowOver(facts));
};

type Observe = (move: VolumeMove, signal: AbortSignal) => Promise<Facts>;

export function createObserver(deps: MoveDeps): Observe {
  const { api } = deps.cluster;
  const { providers, clock } = deps;
  /** Read once: a container with another image is another process. */
  let ownImage: string | undefined;

  const volume = async (name: string | undefined, signal: AbortSignal): Promise<PersistentVolume | undefined> =>
    name ? api.get(persistentVolumes, { name }, signal) : undefined;

  return async (move, signal) => {
    const { namespace = '', name } = move.metadata;
    const { status } = move;
    const phase = status?.phase ?? 'Pending';
    const active = !resting.has(phase);
    const [claim, staging, pods] = await Promise.all([
      api.get(persistentVolumeClaims, { namespace, name }, signal),
      active ? api.get(persistentVolumeClaims, { namespace, name: stagingName(move) }, signal) : undefined,
      api.list(podKind, { namespace }, signal),
    ]);
    const isPending = phase === 'Pending';
    const [from, to, keys, service] = await Promise.all([
      volume(isPending ? claim?.spec?.volumeName : status?.from?.volume, signal),
      volume(status?.to?.volume ?? staging?.spec?.volumeName, signal),
      active ? api.get(secrets, { namespace, name: keysName(move) }, signal) : undefined,
      active ? api.get(services, { namespace, name: serviceName(move) }, signal) : undefined,
    ]);
    const image = active ? await imageOf(move, signal) : undefined;
    return {
      move,
      nowMs: clock.now(),
      claim,
      staging,
      from,
      to,
      pods,
      image,
      refusal: isPending ? await refusal(move, claim, from, pods, image, signal) : undefined,
      keys: keys !== undefined,
      service: service !== undefined,
      progress: phase === 'Copying' || phase === 'FinalCopy' ? await progressOf(move, pods, signal) : undefined,
      mountedBy: frozen.has(phase) && from ? await mounters(move, from, signal) : [],
      silent: phase === 'Copying' || phase === 'FinalCopy' ? await silentOf([from, to], signal) : undefined,
      real: to && needsReal({ move, nowMs: clock.now() }) ? await answerOf(to, signal) : undefined,
      left:
        phase === 'Undoable' && orderOf({ move })?.startsWith('undo') && from ? await realOf(from, signal) : undefined,
    };
  };

  /** Of the agent itself, unless the move names another one. */
  async function imageOf({ spec }: VolumeMove, signal: AbortSignal): Promise<string | undefined> {
    if (spec.image !== undefined) return spec.image;
    const ref = { namespace: deps.systemNamespace, name: deps.podName };
    ownImage ??= (await api.get(podKind, ref, signal))?.spec?.containers[0]?.image;
    return ownImage;
  }

  async function refusal(
    move: VolumeMove,
    claim: Claim | undefined,
    from: PersistentVolume | undefined,
    pods: readonly Pod[],
    image: string | undefined,
    signal: AbortSignal,
  ): Promise<string | undefined> {
    const { namespace = '' } = move.metadata;
    const [claims, classes, nodes, offloading] = await Promise.all([
      api.list(persistentVolumeClaims, { namespace }, signal),
      api.list(storageClasses, {}, signal),
      api.list(virtualNodes, {}, signal),
      api.get(namespaceOffloadings, { namespace, name: namespaceOffloadingName }, signal),
    ]);
    const circumstances = {
      move,
      claims,
      pods,
      volume: from,
      classes,
      offloading,
      virtualNodes: nodes,
      place: (provider: string) => providers.of(provider)?.place(namespace),
      image,
    };
    const why = refusalOf(circumstances);
    if (why !== undefined || claim === undefined) return why;
    const staging = stagingClaim(move, noteOf(claim), undefined);
    const here = await wouldTake(api, staging, 'this cluster', signal);
    if (here !== undefined) return here;
    const target = classFor(claim, circumstances);
    const peer = target.kind === 'remote' ? providers.of(target.provider) : undefined;
    const place = peer?.place(namespace);
    if (target.kind !== 'remote' || !peer || place?.kind !== 'accepted') return undefined;
    const at = {
      consumer: deps.clusterId,
      namespace: place.remoteNamespace,
      name: stagingName(move),
      mark: 'rehearsal',
    };
    const withUid = { ...staging, metadata: { ...staging.metadata, uid: move.metadata.uid ?? '' } };
    return wouldTake(peer.api, remoteClaim(withUid, target, 'Delete', at), `cluster ${target.provider}`, signal);
  }

  /** Why not; quotas and policies are asked by a dry run. */
  async function wouldTake(to: KubeApi, claim: Claim, where: string, signal: AbortSignal): Promise<string | undefined> {
    try {
      const options = { fieldManager: fieldManager.agent, createOnly: true, dryRun: true };
      await to.apply(persistentVolumeClaims, claim, options, signal);
      return undefined;
    } catch (error) {
      if (codeOf(error) === 'kube_conflict') return undefined;
      if (!(error instanceof AppError) || !['kube_forbidden', 'kube_invalid'].includes(error.code)) throw error;
      return `${where} does not take the copy: ${error.message}`;
    }
  }

  async function progressOf(
    move: VolumeMove,
    pods: readonly Pod[],
    signal: AbortSignal,
  ): Promise<MoverProgress | undefined> {
    const names = [moverName(move, 'live'), moverName(move, 'final')];
    const pod = pods.find(({ metadata, status }) => names.includes(metadata.name) && status?.phase === 'Running');
    if (!pod) return undefined;
    const { namespace, name } = pod.metadata;
    try {
      const log = await api.getPath(`/api/v1/namespaces/${namespace}/pods/${name}/log?tailLines=1`, signal);
      const line = JSON.parse(log) as Partial<MoverProgress>;
      return line.total === undefined ? undefined : (line as MoverProgress);
    } catch {
      // The figures are for people; whether the copy is there says the end of the pod.
      return undefined;
    }
  }

  /** Pods at the provider, which may outlive the local ones that stood for them. */
  async function mounters(
    move: VolumeMove,
    from: PersistentVolume,
    signal: AbortSignal,
  ): Promise<string[] | 'unknown'> {
    const at = remoteOf(from);
    if (!at) return [];
    const peer = providers.of(at.provider);
    if (!peer) return 'unknown';
    try {
      const all = await peer.api.list(podKind, { namespace: at.namespace }, signal);
      return all
        .filter(
          (pod) =>
            usesClaim(pod, at.name) && !hasEnded(pod) && pod.metadata.labels?.[moverLabel] !== move.metadata.name,
        )
        .map(({ metadata }) => `pod ${metadata.name}`);
    } catch (error) {
      if (signal.aborted) throw error;
      return 'unknown';
    }
  }

  async function silentOf(
    volumes: readonly (PersistentVolume | undefined)[],
    signal: AbortSignal,
  ): Promise<string | undefined> {
    for (const one of volumes)
      if (one !== undefined && (await answerOf(one, signal)) === 'silent') return remoteOf(one)?.provider;
    return undefined;
  }

  /** Undefined is what its cluster says: it does not have it. */
  async function answerOf(to: PersistentVolume, signal: AbortSignal): Promise<Claim | undefined | 'silent'> {
    const at = remoteOf(to);
    if (at && !providers.of(at.provider)) return 'silent';
    try {
      return await realOf(to, signal);
    } catch (error) {
      if (signal.aborted) throw error;
      return 'silent';
    }
  }

  async function realOf(to: PersistentVolume, signal: AbortSignal): Promise<Claim | undefined> {
    const at: RemoteClaim | undefined = remoteOf(to);
    if (!at)
      return api.get(
        persistentVolumeClaims,
        { namespace: storageNamespace, name: claimUidOf(to.metadata.name) },
        signal,
      );
    return providers.of(at.provider)?.api.get(persistentVolumeClaims, at, signal);
  }
}
