/** Provider side: gives each consumer the namespaces that its replicated NamespaceMap asks for, and takes them away again. */
import { isDeepStrictEqual } from 'node:util';
import { accountSubjects } from '#agent/model/peer-accounts.ts';
import { peerSecrets } from '#agent/model/peering-selections.ts';
import { agentBinding } from '#agent/peering/rights/objects.ts';
import type { Cache, Cluster, Controller } from '#kube/model/types.ts';
import { type ControllerDeps, createController, watch } from '#kube/run/controller.ts';
import { KeyedMutex } from '#shared/async/keyed-mutex.ts';
import { agentRole } from '#shared/domain/agent-roles.ts';
import { namespaces, roleBindings } from '#shared/domain/core-kinds.ts';
import {
  keyOf,
  type Namespace,
  namespaceOfKey,
  type RoleBinding,
  refOf,
  refOfKey,
  type Secret,
} from '#shared/domain/kube-object.ts';
import { annotation, fieldManager, finalizer, isthmusLabel, label, systemNamespace } from '#shared/domain/liqo-keys.ts';
import { again, type Outcome, settled, stalled, waiting } from '#shared/domain/outcome.ts';
import { codeOf } from '#shared/errors/app-error.ts';
import { type NamespaceMap, namespaceMaps } from '#shared/schema/liqo/namespace-map.ts';
import type { GuestRules } from '../guests/decide.ts';
import { createRulebook, type Rulebook } from '../guests/rulebook.ts';
import { guardSnapshots } from '../snapshots/guard.ts';
import { guardClaims } from '../storage/guard.ts';
import { type Decision, decide, type Observed } from './decide.ts';
import { remoteBinding, remoteNamespace } from './objects.ts';

export interface NamespaceMapDeps extends ControllerDeps {
  readonly cluster: Cluster;
}

interface Caches {
  readonly maps: Cache<NamespaceMap>;
  readonly namespaces: Cache<Namespace>;
  readonly bindings: Cache<RoleBinding>;
  readonly rulebook: Rulebook;
  readonly secrets: Cache<Secret>;
  /** By consumer: the maps of one share a limit. */
  readonly turns: KeyedMutex;
}

const retryMs = 30_000;
const staleMs = 100;

const isReplicaOfConsumer = ({ metadata }: NamespaceMap): boolean =>
  metadata.labels?.[label.replicated] === 'true' && (metadata.labels[label.originId] ?? '') !== '';

const ownerKey = ({ metadata }: Namespace | RoleBinding): string | undefined =>
  metadata.annotations?.[annotation.managedByNamespaceMap];

const keysOfBinding = (binding: RoleBinding): string[] => {
  const owner = ownerKey(binding);
  return owner === undefined ? [] : [owner];
};

export function createNamespaceMapController(deps: NamespaceMapDeps): Controller {
  const { cluster } = deps;
  const caches: Caches = {
    maps: cluster.caches.cache(namespaceMaps),
    namespaces: cluster.caches.cache(namespaces),
    bindings: cluster.caches.cache(roleBindings, { labelSelector: label.remoteClusterId }),
    rulebook: createRulebook(cluster.caches),
    secrets: peerSecrets(cluster.caches),
    turns: new KeyedMutex(),
  };

  /** The map that has this namespace, and every map that wants its name: an unrelated one may have been in the way. */
  function* keysOfNamespace(namespace: Namespace): Generator<string> {
    const owner = ownerKey(namespace);
    if (owner !== undefined) yield owner;
    for (const map of caches.maps.list()) {
      const wanted = Object.values(map.spec?.desiredMapping ?? {});
      if (map.metadata.namespace === namespace.metadata.name || wanted.includes(namespace.metadata.name))
        yield keyOf(map);
    }
  }

  /** A slice has got its account, or lost it. */
  const keysOfCredential = ({ metadata }: Secret): string[] =>
    metadata.labels?.[isthmusLabel.credentialOf] === undefined
      ? []
      : caches.maps
          .list()
          .filter((map) => map.metadata.namespace === metadata.namespace && isReplicaOfConsumer(map))
          .map(keyOf);

  return createController(
    {
      name: 'namespace-map',
      // A consumer may have many maps in its tenant namespace.
      ownerOf: namespaceOfKey,
      watches: [
        watch(caches.maps, (map) => (isReplicaOfConsumer(map) ? [keyOf(map)] : [])),
        watch(caches.namespaces, keysOfNamespace),
        watch(caches.bindings, keysOfBinding),
        watch(caches.secrets, keysOfCredential),
        watch(caches.rulebook.policies, () => caches.maps.list().filter(isReplicaOfConsumer).map(keyOf)),
      ],
      reconcile: (key, signal) => reconcile(cluster, caches, key, signal),
    },
    deps,
  );
}

async function reconcile(cluster: Cluster, caches: Caches, key: string, signal: AbortSignal): Promise<Outcome> {
  const origin = caches.maps.get(refOfKey(key))?.metadata.labels?.[label.originId] ?? '';
  let outcome: Outcome = settled;
  await caches.turns.run(origin, signal, async () => {
    const map = caches.maps.get(refOfKey(key));
    if (map && isReplicaOfConsumer(map)) outcome = await serve(cluster, caches, map, signal);
  });
  return outcome;
}

async function serve(cluster: Cluster, caches: Caches, map: NamespaceMap, signal: AbortSignal): Promise<Outcome> {
  let observed = observe(caches, map);
  const hasFinalizer = map.metadata.finalizers?.includes(finalizer.namespaceMap) ?? false;
  if (observed.deleting && !hasFinalizer) return settled;
  if (!observed.deleting) {
    const labels = caches.namespaces.get({ name: observed.tenantNamespace })?.metadata.labels;
    if (!labels) return again(staleMs);
    if (labels[label.remoteClusterId] !== observed.origin || !(label.tenantNamespace in labels)) {
      const message = `label ${label.originId} names ${observed.origin}, but namespace ${observed.tenantNamespace} is that of ${labels[label.remoteClusterId] ?? 'no consumer'}: nothing is created`;
      cluster.events.emit(map, 'Warning', 'WrongOrigin', message);
      return stalled('WrongOrigin', message);
    }
    if (!hasFinalizer) await setFinalizer(cluster, map, true, signal);
  }

  let first = decide(observed);
  // Of what another map got a moment ago the cache may not know yet.
  if (first.create.length > 0) {
    observed = { ...observed, ofOtherMaps: await heldByOthers(cluster, observed, signal) };
    first = decide(observed);
  }
  const { podSecurity } = caches.rulebook.rulesOf(observed.origin);
  const made = await createNamespaces(cluster, first, { ...observed, podSecurity }, signal);
  const decision = made.refused.size === 0 ? first : decide({ ...observed, refused: made.refused });
  for (const remote of decision.bind) await bind(cluster, caches, remote, observed, signal);
  for (const { remote, uid } of decision.remove) {
    await guardClaims(cluster.api, remote, observed.origin, signal);
    await guardSnapshots(cluster.api, remote, observed.origin, signal);
    await cluster.api.delete(namespaces, { name: remote }, { uid }, signal);
  }
  if (observed.deleting && decision.clean) {
    await removeUnseen(cluster, observed, signal);
    await setFinalizer(cluster, map, false, signal);
    return settled;
  }
  if (!made.stale) await report(cluster, map, decision, signal);
  if (made.stale) return again(staleMs);
  const troubled = Object.keys(decision.problems);
  return troubled.length === 0 ? settled : waiting(`the wanted names of ${troubled.join(', ')}`, retryMs);
}

function observe(caches: Caches, map: NamespaceMap): Observed {
  const mapKey = keyOf(map);
  const desired = map.spec?.desiredMapping ?? {};
  const wanted = new Set(Object.values(desired));
  const relevant = caches.namespaces.list().filter((ns) => ownerKey(ns) === mapKey || wanted.has(ns.metadata.name));
  const tenantNamespace = map.metadata.namespace ?? '';
  const binding = (namespace: string) => caches.bindings.get({ namespace, name: tenantNamespace });
  const origin = map.metadata.labels?.[label.originId] ?? '';
  return {
    mapKey,
    origin,
    ofOtherMaps: caches.namespaces.list().filter((ns) => isOfOthers(ns, { mapKey, origin })).length,
    rules: caches.rulebook.rulesOf(origin),
    tenantNamespace,
    accounts: accountSubjects(caches.secrets.list(), tenantNamespace, 'slices'),
    deleting: map.metadata.deletionTimestamp !== undefined,
    desired,
    namespaces: new Map(relevant.map((ns) => [ns.metadata.name, ns])),
    bindings: new Map(relevant.flatMap(({ metadata: { name } }) => [[name, binding(name)] as const]).filter(isPresent)),
  };
}

const isOfOthers = (namespace: Namespace, { mapKey, origin }: Pick<Observed, 'mapKey' | 'origin'>): boolean => {
  const owner = ownerKey(namespace);
  return owner !== undefined && owner !== mapKey && namespace.metadata.labels?.[label.remoteClusterId] === origin;
};

async function heldByOthers({ api }: Cluster, observed: Observed, signal: AbortSignal): Promise<number> {
  const labelSelector = `${label.remoteClusterId}=${observed.origin}`;
  const held = await api.list(namespaces, { labelSelector }, signal);
  return held.filter((namespace) => isOfOthers(namespace, observed)).length;
}

const isPresent = (entry: readonly [string, RoleBinding | undefined]): entry is readonly [string, RoleBinding] =>
  entry[1] !== undefined;

/** `stale`: a namespace exists that the cache has not seen yet; whose it is will be known in a moment. */
async function createNamespaces(
  { api }: Cluster,
  { create }: Decision,
  consumer: Observed & Pick<GuestRules, 'podSecurity'>,
  signal: AbortSignal,
) {
  const refused = new Set<string>();
  let stale = false;
  for (const { remote, local } of create) {
    try {
      await api.create(namespaces, remoteNamespace(remote, local, consumer, consumer.podSecurity), {}, signal);
    } catch (error) {
      const code = codeOf(error);
      if (code === 'kube_already_exists') stale = true;
      else if (code === 'kube_invalid' || code === 'kube_forbidden') refused.add(remote);
      else throw error;
    }
  }
  return { refused, stale };
}

/** Also repairs: a binding whose subjects or role were changed is restored. */
async function bind({ api }: Cluster, caches: Caches, remote: string, consumer: Observed, signal: AbortSignal) {
  const wanted = remoteBinding(remote, consumer);
  const existing = caches.bindings.get(refOf(wanted));
  const uid = existing?.metadata.uid;
  // roleRef cannot be changed in place.
  if (existing && uid && !isDeepStrictEqual(existing.roleRef, wanted.roleRef)) {
    await api.delete(roleBindings, refOf(existing), { uid }, signal);
  }
  try {
    // Ours first: the consumer makes ShadowPods as soon as it may, and those become pods by this right.
    const ours = agentBinding(agentRole.guest, remote, systemNamespace);
    await api.apply(roleBindings, ours, { fieldManager: fieldManager.agent }, signal);
    await api.apply(roleBindings, wanted, { fieldManager: fieldManager.agent }, signal);
  } catch (error) {
    // The namespace went away between; its event brings us back.
    if (codeOf(error) !== 'kube_not_found') throw error;
  }
}

async function report(cluster: Cluster, map: NamespaceMap, { current, problems }: Decision, signal: AbortSignal) {
  for (const [local, why] of Object.entries(problems)) {
    cluster.events.emit(map, 'Warning', 'CreationLoopBackOff', `${local}: ${why}`);
  }
  const before = map.status?.currentMapping ?? {};
  if (isDeepStrictEqual(before, current)) return;
  const gone = Object.keys(before).filter((local) => !(local in current));
  const patch = {
    status: { currentMapping: { ...Object.fromEntries(gone.map((local) => [local, null])), ...current } },
  };
  await cluster.api.mergePatch(namespaceMaps, refOf(map), patch, { subresource: 'status' }, signal).catch(unlessGone);
}

/** Asks the API server: a namespace created a moment before the map was deleted may not be in the cache yet. */
async function removeUnseen({ api }: Cluster, { mapKey, origin }: Observed, signal: AbortSignal): Promise<void> {
  const labelSelector = `${label.remoteClusterId}=${origin}`;
  const left = (await api.list(namespaces, { labelSelector }, signal)).filter((ns) => ownerKey(ns) === mapKey);
  for (const { metadata } of left) {
    if (metadata.deletionTimestamp) continue;
    await guardClaims(api, metadata.name, origin, signal);
    await guardSnapshots(api, metadata.name, origin, signal);
    await api.delete(namespaces, { name: metadata.name }, metadata.uid ? { uid: metadata.uid } : {}, signal);
  }
}

async function setFinalizer({ api }: Cluster, map: NamespaceMap, present: boolean, signal: AbortSignal) {
  const others = (map.metadata.finalizers ?? []).filter((f) => f !== finalizer.namespaceMap);
  const finalizers = present ? [...others, finalizer.namespaceMap] : others;
  const patch = { metadata: { finalizers, resourceVersion: map.metadata.resourceVersion } };
  await api.mergePatch(namespaceMaps, refOf(map), patch, {}, signal).catch(unlessGone);
}

function unlessGone(error: unknown): void {
  if (codeOf(error) !== 'kube_not_found') throw error;
}
