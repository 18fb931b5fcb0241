/** Consumer: copies slices, namespace maps and renewals to their provider, and brings the status of each copy back. */
import { ownerName } from '#agent/forge/owner.ts';
import type { Replicated } from '#agent/forge/replica.ts';
import { createController, watch } from '#agent/kube/controller.ts';
import type { Cache, Controller } from '#agent/kube/types.ts';
import { secrets } from '#shared/domain/core-kinds.ts';
import {
  type KubeObject,
  keyOf,
  type ObjectRef,
  type ResourceType,
  refOf,
  refOfKey,
  type Secret,
} from '#shared/domain/kube-object.ts';
import { finalizer, isthmusAnnotation } from '#shared/domain/liqo-keys.ts';
import { type Outcome, settled, stalled, waiting } from '#shared/domain/outcome.ts';
import { codeOf } from '#shared/errors/app-error.ts';
import { foreignClusters } from '#shared/schema/liqo/foreign-cluster.ts';
import { renews } from '#shared/schema/liqo/renew.ts';
import { resourceSlices } from '#shared/schema/liqo/resource-slice.ts';
import { virtualNodes } from '#shared/schema/liqo/virtual-node.ts';
import { isPeerDead } from '../dead-peers.ts';
import { createExplain } from '../explain.ts';
import { peerOf, peerSecrets, tenantNamespaces } from '../peering-caches.ts';
import type { PeeringDeps } from '../peering-deps.ts';
import { addFinalizer, dropFinalizer, writeStatus } from '../peering-writes.ts';
import { isOriginal, providerOf } from '../slice-roles.ts';
import { placementOf } from '../tenant-namespaces.ts';
import { createAccessCheck } from './check-access.ts';
import { createConnectPeer } from './connect-peer.ts';
import { copiesLeft, isSilence, withdrawn } from './copies.ts';
import { decideCopy } from './decide.ts';
import { createLinkView } from './link.ts';
import { atProvider, outcomeOfFailure } from './remote-failure.ts';
import { credentialsOf, isControlPlane, openSession, replicatedKinds, type Session } from './sessions.ts';
import { isCutOff, isShutOut, proxyInLink, type WayFacts } from './way.ts';

const secretPrefix = 'secret';
const linkPrefix = 'link';
const keyFor = (prefix: string, key: string): string => `${prefix}|${key}`;

export function createReplicatorController(deps: PeeringDeps): Controller {
  const { cluster, clusterId, clock, log } = deps;
  const { api, caches, events } = cluster;
  const connect = deps.connectPeer ?? createConnectPeer({ clock, log });
  const secretCache = peerSecrets(caches);
  const namespaces = tenantNamespaces(caches);
  const clusterCache = caches.cache(foreignClusters);
  const nodeCache = caches.cache(virtualNodes);
  const link = createLinkView(caches);
  const originals = new Map<string, Cache<Replicated>>(
    replicatedKinds.map((type) => [type.plural, caches.cache(type)]),
  );
  const sessions = new Map<string, Session>();
  const explain = createExplain(events, clock);
  const checkAccess = createAccessCheck(clusterId);
  let lifetime = new AbortController();

  const originalsOf = (peer: string): { type: ResourceType<Replicated>; object: Replicated }[] =>
    replicatedKinds.flatMap((type) =>
      (originals.get(type.plural)?.list() ?? [])
        .filter((object) => isOriginal(object) && providerOf(object) === peer)
        .map((object) => ({ type, object })),
    );
  const keysOfPeer = (peer: string): string[] => [
    ...secretCache
      .list()
      .filter((secret) => isControlPlane(secret) && peerOf(secret) === peer)
      .map((secret) => keyFor(secretPrefix, keyOf(secret))),
    ...originalsOf(peer).map(({ type, object }) => keyFor(type.plural, keyOf(object))),
  ];
  const sessionIn = (namespace: string | undefined, peer?: string): Session | undefined =>
    [...sessions.values()].find(
      (session) => session.localNamespace === namespace && (peer === undefined || session.peer === peer),
    );
  const isDead = (peer: string): boolean => isPeerDead(clusterCache.list(), peer);
  /** A link matters only to credentials that go. Their connection has a key of its own: other passes may be held up in requests over it. */
  const keysOfLink = (object: KubeObject): string[] => {
    const peer = peerOf(object) ?? '';
    const ending = secretCache
      .list()
      .filter(({ metadata }) => metadata.deletionTimestamp !== undefined)
      .filter((secret) => isControlPlane(secret) && peerOf(secret) === peer);
    return ending.length === 0
      ? []
      : [...ending.map((secret) => keyFor(linkPrefix, keyOf(secret))), ...keysOfPeer(peer)];
  };

  function stop(secretKey: string): void {
    sessions.get(secretKey)?.stop();
    sessions.delete(secretKey);
  }

  async function ensureSession(secret: Secret, secretKey: string): Promise<Session | Outcome> {
    const credentials = credentialsOf(secret, secretKey);
    if (credentials === undefined) {
      stop(secretKey);
      return waiting('data.kubeconfig and annotation liqo.io/remote-tenant-namespace', 60_000);
    }
    const running = sessions.get(secretKey);
    if (running?.fingerprint === credentials.fingerprint) return running;
    const rival = [...sessions.values()].find((one) => one.peer === credentials.peer && one.secretKey !== secretKey);
    if (rival !== undefined) {
      return stalled(
        'DuplicateCredentials',
        `Secret ${rival.secretKey} already holds the control-plane credentials for ${credentials.peer}; delete one of them`,
      );
    }
    stop(secretKey);
    try {
      const session = await openSession(
        credentials,
        clusterId,
        connect,
        {
          onCopy: (type, copy, { localNamespace }) =>
            controller.enqueue(keyFor(type.plural, `${localNamespace}/${copy.metadata.name}`)),
          onSynced: (_type, { peer }) => keysOfPeer(peer).forEach(controller.enqueue),
        },
        lifetime.signal,
      );
      sessions.set(secretKey, session);
      keysOfPeer(credentials.peer).forEach(controller.enqueue);
      return session;
    } catch (error) {
      if (codeOf(error) === 'invalid_input') return stalled('InvalidKubeconfig', (error as Error).message);
      throw error;
    }
  }

  function hangUp(secretKey: string): Outcome {
    const secret = secretCache.get(refOfKey(secretKey));
    if (secret !== undefined && isCutOff(link.wayOf(secret))) stop(secretKey);
    return settled;
  }

  async function release(secret: Secret, secretKey: string, signal: AbortSignal): Promise<Outcome> {
    const peer = peerOf(secret) ?? '';
    const done = async (): Promise<Outcome> => {
      stop(secretKey);
      await dropFinalizer(api, secrets, secret, finalizer.replicatorSecret, signal);
      return settled;
    };
    if (secret.metadata.finalizers?.includes(finalizer.replicatorSecret) !== true || isDead(peer)) return done();
    const here = originalsOf(peer).filter(({ object }) =>
      object.metadata.finalizers?.includes(finalizer.replicatorResource),
    );
    const way = link.wayOf(secret);
    const isCut = isCutOff(way);
    if (isCut) stop(secretKey);
    // First the connection: after a restart the originals below need it to go.
    const session = isCut ? undefined : await ensureSession(secret, secretKey);
    if (here.length > 0) {
      const names = here.map(({ type, object }) => `${type.kind} ${object.metadata.name}`).join(', ');
      return session !== undefined && 'kind' in session
        ? session
        : waiting(`removal of ${names}, which need these credentials`, 30_000);
    }
    const leave = (): Promise<Outcome> => {
      log.info('what is left at the provider goes with its Tenant: the way there is closed', { peer });
      return done();
    };
    if (session === undefined) return leave();
    if ('kind' in session) return done();
    try {
      const left = await copiesLeft(session, clusterId, signal);
      if (left.length === 0) return done();
      const names = left.map((copy) => copy.metadata.name).join(', ');
      return waiting(`provider ${peer} to remove its copies of ${names}`, 10_000);
    } catch (error) {
      if (isSilence(error) && isShutOut(way, clock.now())) return leave();
      const outcome = outcomeOfFailure(error, peer);
      if (outcome === undefined) throw error;
      return outcome;
    }
  }

  async function reconcileSecret(key: string, signal: AbortSignal): Promise<Outcome> {
    const secret = secretCache.get(refOfKey(key));
    if (secret === undefined || !isControlPlane(secret)) {
      stop(key);
      return settled;
    }
    if (secret.metadata.deletionTimestamp !== undefined) return explain(secret, await release(secret, key, signal));
    // A consumer may write Secrets in namespaces mapped for it; only those in a tenant namespace speak for a provider.
    const placement = placementOf(secret, peerOf(secret), namespaces.list());
    if ('outcome' in placement) {
      stop(key);
      return explain(secret, placement.outcome);
    }
    const session = await ensureSession(secret, key);
    if ('kind' in session) return explain(secret, session);
    const { trouble = settled, warning } = await checkAccess(session, signal);
    if (warning !== undefined) events.emit(secret, 'Warning', warning.reason, warning.message);
    return explain(secret, trouble);
  }

  /** From the first copy on: credentials that never worked are deleted like any other Secret. False: they are about to go. */
  async function holdCredentials({ secretKey }: Session, signal: AbortSignal): Promise<boolean> {
    const secret = secretCache.get(refOfKey(secretKey));
    if (secret === undefined || secret.metadata.deletionTimestamp !== undefined) return false;
    const proxy = proxyInLink(secret, link.wayOf(secret).configurations);
    if (proxy !== undefined && secret.metadata.annotations?.[isthmusAnnotation.proxyInLink] !== proxy)
      await api.mergePatch(
        secrets,
        refOf(secret),
        { metadata: { annotations: { [isthmusAnnotation.proxyInLink]: proxy } } },
        {},
        signal,
      );
    await addFinalizer(api, secrets, secret, finalizer.replicatorSecret, signal);
    return true;
  }

  /** A copy whose original is gone: somebody took the finalizer away by hand. */
  async function orphan(type: ResourceType<Replicated>, ref: ObjectRef, signal: AbortSignal): Promise<Outcome> {
    const session = sessionIn(ref.namespace);
    const copy = session?.copies(type).get({ namespace: session.remoteNamespace, name: ref.name });
    if (session === undefined || copy === undefined || copy.metadata.deletionTimestamp !== undefined) return settled;
    if ((await api.get(type, ref, signal)) !== undefined) return settled;
    try {
      await atProvider(
        session.connection.api.delete(type, { namespace: session.remoteNamespace, name: ref.name }, {}, signal),
      );
      return settled;
    } catch (error) {
      const outcome = outcomeOfFailure(error, session.peer);
      if (outcome === undefined) throw error;
      return outcome;
    }
  }

  /** A Renew holds nothing: unlike what was granted, it is left to a provider that has closed its proxy. */
  async function isTakenBack(
    type: ResourceType<Replicated>,
    name: string,
    session: Session,
    way: WayFacts | undefined,
    signal: AbortSignal,
  ): Promise<boolean> {
    try {
      return await withdrawn(type, name, session, clusterId, signal);
    } catch (error) {
      const isLeft = type.plural === renews.plural && way !== undefined && isShutOut(way, clock.now());
      if (isLeft && isSilence(error)) return true;
      throw error;
    }
  }

  async function withdraw(type: ResourceType<Replicated>, local: Replicated, signal: AbortSignal): Promise<Outcome> {
    if (local.metadata.finalizers?.includes(finalizer.replicatorResource) !== true) return settled;
    const { name, namespace = '' } = local.metadata;
    const provider = providerOf(local) ?? peerOf(local) ?? '';
    const credentials = secretCache
      .list()
      .find((one) => isControlPlane(one) && one.metadata.namespace === namespace && peerOf(one) === provider);
    const way = credentials && link.wayOf(credentials);
    if (!isDead(provider)) {
      const node = type.plural === resourceSlices.plural ? nodeCache.get({ namespace, name }) : undefined;
      // The pods behind a virtual node end through the rights that the slice gives.
      if (node !== undefined && ownerName(resourceSlices, node) === name)
        return waiting(`VirtualNode ${name} to drain`, 30_000);
      if (way === undefined || !isCutOff(way)) {
        const session = sessionIn(namespace, provider);
        if (session === undefined)
          return waiting(`a connection to provider ${provider} (a kubeconfig Secret of type ControlPlane)`, 30_000);
        if (!(await isTakenBack(type, name, session, way, signal)))
          return waiting(`provider ${provider} to remove its copy`, 10_000);
      }
    }
    await dropFinalizer(api, type, local, finalizer.replicatorResource, signal);
    return settled;
  }

  async function replicate(
    type: ResourceType<Replicated>,
    local: Replicated,
    provider: string,
    signal: AbortSignal,
  ): Promise<Outcome> {
    if (isDead(provider))
      return stalled(
        'PeerDeclaredDead',
        `ForeignCluster ${provider} is annotated as permanently unreachable; remove the annotation to go on`,
      );
    const session = sessionIn(local.metadata.namespace, provider);
    if (session === undefined)
      return waiting(`control-plane credentials for ${provider} (Identity of type ControlPlane)`, 60_000);
    const copies = session.copies(type);
    if (!copies.isSynced())
      return waiting(`provider ${provider} to list our copies (it may not have given us rights yet)`, 10_000);
    if (!(await holdCredentials(session, signal)))
      return waiting(
        `control-plane credentials for ${provider}, as Secret ${session.secretKey} is being deleted`,
        10_000,
      );
    const held = await addFinalizer(api, type, local, finalizer.replicatorResource, signal);
    const ref = { namespace: session.remoteNamespace, name: local.metadata.name };
    const remote = session.connection.api;
    const copy = copies.get(ref) ?? (await atProvider(remote.get(type, ref, signal)));
    const step = decideCopy(held, copy, clusterId, session.remoteNamespace);
    switch (step.do) {
      case 'create':
        await atProvider(remote.create(type, step.replica, {}, signal));
        return settled;
      case 'wait':
        return waiting(step.on, 10_000);
      case 'refuse':
        return stalled('NameTakenAtProvider', step.message);
      case 'correct':
        await atProvider(remote.update(type, step.replica, {}, signal));
        break;
      case 'nothing':
        break;
    }
    if (copy?.status !== undefined) await writeStatus(api, type, held, copy.status, signal);
    return settled;
  }

  async function reconcileObject(type: ResourceType<Replicated>, key: string, signal: AbortSignal): Promise<Outcome> {
    const ref = refOfKey(key);
    const local = originals.get(type.plural)?.get(ref);
    if (local === undefined) return orphan(type, ref, signal);
    const provider = providerOf(local);
    const isWanted = isOriginal(local) && provider !== undefined && local.metadata.deletionTimestamp === undefined;
    try {
      return explain(
        local,
        isWanted ? await replicate(type, local, provider, signal) : await withdraw(type, local, signal),
      );
    } catch (error) {
      const outcome = outcomeOfFailure(error, provider ?? '');
      if (outcome === undefined) throw error;
      return explain(local, outcome);
    }
  }

  const controller = createController(
    {
      name: 'replicator',
      workers: 4,
      watches: [
        watch(secretCache, (secret) => (isControlPlane(secret) ? [keyFor(secretPrefix, keyOf(secret))] : [])),
        watch(namespaces, (namespace) => keysOfPeer(peerOf(namespace) ?? '')),
        watch(clusterCache, (foreign) => keysOfPeer(foreign.spec.clusterID)),
        watch(nodeCache, (node) =>
          ownerName(resourceSlices, node) === undefined ? [] : [keyFor(resourceSlices.plural, keyOf(node))],
        ),
        ...link.caches.map((cache) => watch(cache, keysOfLink)),
        ...replicatedKinds.map((type) =>
          watch(originals.get(type.plural) as Cache<Replicated>, (object) => keysOfOriginal(type, object)),
        ),
      ],
      async reconcile(key, signal) {
        const [prefix = '', rest = ''] = key.split('|', 2);
        if (prefix === secretPrefix) return reconcileSecret(rest, signal);
        if (prefix === linkPrefix) return hangUp(rest);
        const type = replicatedKinds.find(({ plural }) => plural === prefix);
        return type === undefined ? settled : reconcileObject(type, rest, signal);
      },
    },
    { clock, log },
  );

  /** Its own key, and the credentials that wait for it to go. */
  function keysOfOriginal(type: ResourceType<Replicated>, object: Replicated): string[] {
    const isHeld = object.metadata.finalizers?.includes(finalizer.replicatorResource) ?? false;
    if (!isOriginal(object) && !isHeld) return [];
    const waitingSecrets = secretCache
      .list()
      .filter(
        (secret) =>
          isControlPlane(secret) &&
          secret.metadata.deletionTimestamp !== undefined &&
          secret.metadata.namespace === object.metadata.namespace,
      );
    return [keyFor(type.plural, keyOf(object)), ...waitingSecrets.map((secret) => keyFor(secretPrefix, keyOf(secret)))];
  }

  return {
    ...controller,
    async run(signal) {
      lifetime = new AbortController();
      try {
        await controller.run(signal);
      } finally {
        lifetime.abort(new Error('the replicator stopped'));
        for (const secretKey of [...sessions.keys()]) stop(secretKey);
      }
    },
  };
}
