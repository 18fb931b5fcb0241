/** Binds claims of virtual StorageClasses: to a volume of this cluster, or to one at the provider whose virtual node the scheduler selected. */
import { peerOf, virtualNodeNodes } from '#agent/model/peering-selections.ts';
import type { Cluster, Controller } from '#kube/model/types.ts';
import { type ControllerDeps, createController, watch } from '#kube/run/controller.ts';
import { createUnlessThere } from '#kube/writes/write-if-changed.ts';
import { backoffMs } from '#shared/async/backoff.ts';
import {
  namespaces,
  nodes,
  type PersistentVolume,
  type PersistentVolumeClaim,
  persistentVolumeClaims,
  persistentVolumes,
  storageClasses,
} from '#shared/domain/core-kinds.ts';
import { keyOf, namespaceOfKey, refOfKey } from '#shared/domain/kube-object.ts';
import { again, type Outcome, settled, waiting } from '#shared/domain/outcome.ts';
import { homeClaimOf, storageAnnotation, storageNamespace } from '#shared/domain/storage-keys.ts';
import { unreachable } from '#shared/domain/unreachable.ts';
import { AppError, codeOf } from '#shared/errors/app-error.ts';
import { virtualNodes } from '#shared/schema/liqo/virtual-node.ts';
import { allClaims, allVolumes, isUnpublished, nodeOf, volumeNameOf } from '../model/claims.ts';
import { dataSourceOf } from '../model/data-source.ts';
import type { ReachableProviders } from '../providers/reachable-providers.ts';
import { type Backing, decide, type Step } from './decide.ts';
import { isGoing } from './name-holder.ts';
import { localClaim, localVolume, policyOf, remoteClaim, remoteNames, remoteVolume } from './objects.ts';
import { readOrigin } from './origin.ts';
import { withOrigin } from './source.ts';
import { type SelectedNode, type Target, targetOf } from './target.ts';
import { createBindingWrites } from './writes.ts';

export interface BindingDeps extends ControllerDeps {
  readonly cluster: Cluster;
  readonly clusterId: string;
  readonly providers: ReachableProviders;
}

type Claim = PersistentVolumeClaim;

const waitMs = 60_000;
const snapshotWaitMs = 3_000;
/** What a cache does not show yet. */
const staleMs = 200;
const attempt = { baseMs: 1_000, maxMs: 300_000 };

const isRefusal = (error: unknown): error is AppError =>
  error instanceof AppError && ['kube_invalid', 'kube_forbidden'].includes(error.code);

export function createBindingController(deps: BindingDeps): Controller {
  const { api, caches, events } = deps.cluster;
  const { providers, clusterId, clock } = deps;
  const apiOf = (provider: string | undefined) => (provider === undefined ? api : providers.of(provider)?.api);
  const { reschedule, lend, unmark, discard } = createBindingWrites(deps.cluster, apiOf);
  const claims = allClaims(caches);
  const volumes = allVolumes(caches);
  const classes = caches.cache(storageClasses);
  const nodeCache = virtualNodeNodes(caches);
  const virtual = caches.cache(virtualNodes);
  /** By claim UID: how often a provider refused it in a row, and until when it is left alone. */
  const refusals = new Map<string, { readonly count: number; readonly untilMs: number }>();

  const homeKeys = (claim: Claim): string[] => {
    const home = homeClaimOf(claim.metadata.annotations);
    return home ? [`${home.namespace}/${home.name}`] : [];
  };
  const selecting = (node: string): string[] => claims.byIndex('node', node).map(keyOf);
  /** Claims that are to be copies of this one, and have no volume yet. */
  const copiesOf = (key: string): string[] => claims.byIndex('source', key).map(keyOf);
  const withCopies = (keys: readonly string[]): string[] => [...keys, ...keys.flatMap(copiesOf)];

  const controller = createController(
    {
      name: 'volume-binding',
      ownerOf: namespaceOfKey,
      workers: 8,
      watches: [
        watch(claims, (claim) =>
          claim.metadata.namespace === storageNamespace && homeClaimOf(claim.metadata.annotations)
            ? homeKeys(claim)
            : [...(nodeOf(claim) ? [keyOf(claim)] : []), ...copiesOf(keyOf(claim))],
        ),
        watch(volumes, ({ spec }) => {
          const { namespace, name } = spec?.claimRef ?? {};
          if (namespace !== storageNamespace) return namespace && name ? withCopies([`${namespace}/${name}`]) : [];
          const real = claims.get({ namespace, name: name ?? '' });
          return real ? homeKeys(real) : [];
        }),
        watch(classes, ({ metadata }) =>
          claims
            .list()
            .filter(({ spec }) => spec?.storageClassName === metadata.name && !spec.volumeName)
            .map(keyOf),
        ),
        watch(nodeCache, ({ metadata }) => selecting(metadata.name)),
        watch(virtual, ({ metadata }) => selecting(metadata.name)),
      ],
      reconcile,
    },
    deps,
  );

  let ownMark: string | undefined;
  /** Of this cluster, which another one of its name and ID does not share: the UID of its oldest namespace. */
  async function incarnation(signal: AbortSignal): Promise<string> {
    ownMark ??= (await api.get(namespaces, { name: 'kube-system' }, signal))?.metadata.uid;
    return ownMark ?? 'unknown';
  }

  async function selectedNodeOf(name: string, signal: AbortSignal): Promise<SelectedNode> {
    const node = nodeCache.get({ name });
    const provider = node && peerOf(node);
    if (provider !== undefined) {
      const offered = virtual.list().find(({ metadata }) => metadata.name === name)?.spec.storageClasses;
      return { kind: 'virtual', provider, offered };
    }
    return (await api.get(nodes, { name }, signal)) ? { kind: 'real' } : { kind: 'missing' };
  }

  async function targetFor(claim: Claim, signal: AbortSignal): Promise<Target> {
    const name = nodeOf(claim);
    const node = name === undefined ? undefined : await selectedNodeOf(name, signal);
    return targetOf(claim, { classes: classes.list(), nodeOf: () => node ?? { kind: 'missing' } });
  }

  /** As the caches show them. */
  const knownBackings = (key: string): Backing[] => [
    ...claims.byIndex('home', key).map((object): Backing => ({ object })),
    ...providers
      .list()
      .flatMap(({ provider, claims: there }) => there.byHome(key).map((object): Backing => ({ provider, object }))),
  ];
  const uidOf = ({ object }: Backing): string => homeClaimOf(object.metadata.annotations)?.uid ?? '';

  /** Those of this very claim: where it is to be, as the API servers say; elsewhere, as the caches do. */
  async function backingsOf(
    claim: Claim,
    target: Target,
    known: readonly Backing[],
    signal: AbortSignal,
  ): Promise<Backing[]> {
    const { uid = '', namespace = '' } = claim.metadata;
    const real = await api.get(persistentVolumeClaims, { namespace: storageNamespace, name: uid }, signal);
    const provider = target.kind === 'remote' ? target.provider : undefined;
    const others = known.filter((one) => one.provider !== undefined && one.provider !== provider && uidOf(one) === uid);
    const found: Backing[] = [...(real ? [{ object: real }] : []), ...others];
    if (provider === undefined) return found;
    const peer = providers.of(provider);
    const place = peer?.place(namespace);
    if (!peer || place?.kind !== 'accepted') return found;
    peer.watch(namespace, place.remoteNamespace);
    for (const name of remoteNames(claim)) {
      const object = await peer.api.get(persistentVolumeClaims, { namespace: place.remoteNamespace, name }, signal);
      if (object && homeClaimOf(object.metadata.annotations)?.uid === uid) found.push({ provider, object });
    }
    return found;
  }

  async function reconcile(key: string, signal: AbortSignal): Promise<Outcome> {
    const claim = claims.get(refOfKey(key));
    const known = knownBackings(key);
    const strays = known.filter((one) => isUnpublished(one.object) && uidOf(one) !== claim?.metadata.uid);
    if (strays.length > 0) {
      // Whether an earlier cluster of this name has published one, its volumes would say, and they are gone with it.
      const own = await incarnation(signal);
      const ours = strays.filter(({ object }) => object.metadata.annotations?.[storageAnnotation.unpublished] === own);
      if (ours.length > 0) return discardStrays(key, ours, signal);
    }
    if (!claim) return settled;
    const { uid = '', namespace = '' } = claim.metadata;
    const isFinished = claim.spec?.volumeName !== undefined;
    const marked = known.some((one) => isUnpublished(one.object) && uidOf(one) === uid);
    if (isFinished && !marked) return settled;
    const held = refusals.get(uid);
    if (held && held.untilMs > clock.now()) return again(held.untilMs - clock.now());
    const target = await targetFor(claim, signal);
    if (target.kind === 'none' && known.length === 0) return settled;
    const published = (await api.get(persistentVolumes, { name: volumeNameOf(uid) }, signal)) !== undefined;
    const backings = await backingsOf(claim, target, known, signal);
    const name = backings.find(({ provider }) => provider === undefined)?.object.spec?.volumeName;
    const source = name ? await api.get(persistentVolumes, { name }, signal) : undefined;
    const place = target.kind === 'remote' ? providers.of(target.provider)?.place(namespace) : undefined;
    const isBegun = published || backings.some(({ object }) => isUnpublished(object));
    const origin =
      isBegun || isFinished
        ? undefined
        : await readOrigin(claim, target, { api, providers, classes: classes.list() }, signal);
    return perform(decide({ claim, target, published, backings, source, place, origin }), claim, target, signal);
  }

  async function perform(step: Step, claim: Claim, target: Target, signal: AbortSignal): Promise<Outcome> {
    const { uid = '' } = claim.metadata;
    switch (step.do) {
      case 'nothing':
        refusals.delete(uid);
        return settled;
      case 'wait':
        events.emit(claim, 'Normal', 'WaitingForVolume', `waiting for ${step.on}`);
        // No watch tells of VolumeSnapshots, which a cluster may not have.
        return waiting(step.on, dataSourceOf(claim).kind === 'snapshot' ? snapshotWaitMs : waitMs);
      case 'refuse':
        events.emit(claim, 'Warning', 'ProvisioningFailed', step.message);
        return waiting(step.message, waitMs);
      case 'reschedule':
        await reschedule(claim, step.message, signal, step.reason);
        return settled;
      case 'unmark':
        await unmark(step.backing, signal);
        return again(staleMs);
      case 'discard':
        await discard(step.backing, signal);
        return again(staleMs);
      case 'lend':
        await lend(claim, step.original, signal);
        return again(staleMs);
      case 'createLocal':
        return target.kind === 'local'
          ? begin(
              claim,
              undefined,
              (policy, mark) => withOrigin(localClaim(claim, target, policy, mark), step.copy),
              signal,
            )
          : settled;
      case 'createRemote':
        return target.kind === 'remote' ? createRemote(claim, target, step, signal) : settled;
      case 'publishLocal': {
        const storageClass = classOf(claim);
        if (!storageClass) return again(staleMs);
        return publish(claim, localVolume(claim, storageClass, step.source), step.backing, signal);
      }
      case 'publishRemote': {
        const storageClass = classOf(claim);
        const { provider = '', object } = step.backing;
        if (!storageClass) return again(staleMs);
        const at = { provider, namespace: object.metadata.namespace ?? '', name: object.metadata.name };
        return publish(claim, remoteVolume(claim, storageClass, at), step.backing, signal);
      }
      default:
        return unreachable(step);
    }
  }

  const classOf = ({ spec }: Claim) => classes.get({ name: spec?.storageClassName ?? '' });

  type Policy = ReturnType<typeof policyOf>;

  async function begin(
    claim: Claim,
    provider: string | undefined,
    wanted: (policy: Policy, mark: string) => Claim,
    signal: AbortSignal,
  ): Promise<Outcome> {
    const storageClass = classOf(claim);
    const to = apiOf(provider);
    if (!storageClass || !to) return again(staleMs);
    const where = provider === undefined ? 'in this cluster' : `at cluster ${provider}`;
    const object = wanted(policyOf(storageClass), await incarnation(signal));
    events.emit(claim, 'Normal', 'Provisioning', `volume of StorageClass ${object.spec?.storageClassName} ${where}`);
    try {
      await to.create(persistentVolumeClaims, object, { answer: 'metadata' }, signal);
    } catch (error) {
      if (codeOf(error) === 'kube_already_exists') return again(staleMs);
      if (!isRefusal(error)) throw error;
      return refusedBy(claim, `${where} the real claim was refused: ${error.message}`, signal);
    }
    refusals.delete(claim.metadata.uid ?? '');
    return again(0);
  }

  /** The first time another node is asked for at once. */
  async function refusedBy(claim: Claim, message: string, signal: AbortSignal): Promise<Outcome> {
    const { uid = '' } = claim.metadata;
    const count = (refusals.get(uid)?.count ?? 0) + 1;
    const pauseMs = count === 1 ? 0 : backoffMs(count - 1, attempt);
    refusals.set(uid, { count, untilMs: clock.now() + pauseMs });
    await reschedule(claim, message, signal);
    return settled;
  }

  /** Its name may still belong to the volume of an earlier claim. */
  async function createRemote(
    claim: Claim,
    target: Extract<Target, { kind: 'remote' }>,
    { namespace, copy }: Extract<Step, { do: 'createRemote' }>,
    signal: AbortSignal,
  ): Promise<Outcome> {
    const peer = providers.of(target.provider);
    if (!peer) return again(staleMs);
    const [plain, unique] = remoteNames(claim);
    const holder = await peer.api.get(persistentVolumeClaims, { namespace, name: plain }, signal);
    if (holder !== undefined && (await isGoing(holder, api, signal)))
      return perform(
        { do: 'wait', on: `claim ${namespace}/${plain} at cluster ${target.provider} to go` },
        claim,
        target,
        signal,
      );
    const at = { consumer: clusterId, namespace, name: holder ? unique : plain };
    const wanted = (policy: Policy, mark: string): Claim =>
      withOrigin(remoteClaim(claim, target, policy, { ...at, mark }), copy);
    return begin(claim, target.provider, wanted, signal);
  }

  async function publish(
    claim: Claim,
    volume: PersistentVolume,
    backing: Backing,
    signal: AbortSignal,
  ): Promise<Outcome> {
    await createUnlessThere(api, persistentVolumes, volume, signal);
    const isPublished = await unmark(backing, signal);
    const where = backing.provider === undefined ? 'in this cluster' : `at cluster ${backing.provider}`;
    events.emit(claim, 'Normal', 'ProvisioningSucceeded', `volume ${volume.metadata.name} ${where}`);
    return isPublished ? settled : again(staleMs);
  }

  /** Real claims of this name whose claim vanished before its volume was made. */
  async function discardStrays(key: string, strays: readonly Backing[], signal: AbortSignal): Promise<Outcome> {
    for (const stray of strays) {
      const [home, volume] = await Promise.all([
        api.get(persistentVolumeClaims, refOfKey(key), signal),
        api.get(persistentVolumes, { name: volumeNameOf(uidOf(stray)) }, signal),
      ]);
      // Otherwise the cache does not show the claim yet.
      if (home?.metadata.uid !== uidOf(stray)) await (volume ? unmark(stray, signal, 'stray') : discard(stray, signal));
    }
    return again(strays.every(({ object }) => object.metadata.deletionTimestamp !== undefined) ? waitMs : staleMs);
  }

  return {
    ...controller,
    async run(signal) {
      const unsubscribe = providers.subscribe({
        claim: (claim) => {
          for (const key of withCopies(homeKeys(claim))) controller.enqueue(key);
        },
        moved: (provider) => {
          for (const node of nodeCache.list().filter((one) => peerOf(one) === provider))
            for (const key of selecting(node.metadata.name)) controller.enqueue(key);
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
