/** Provider side: runs a Pod for each ShadowPod, keeps it until the ShadowPod goes or the pod has finished, and reports its phase. */

import { viewOfPeer } from '#agent/network/addresses/view-of-peer.ts';
import { isFinished } from '#agent/offloading/provider/model/pod-phase.ts';
import { OwnWrites } from '#kube/cache/own-writes.ts';
import type { Cache, Cluster, Controller } from '#kube/model/types.ts';
import { type ControllerDeps, createController, watch } from '#kube/run/controller.ts';
import { isChangedOrGone } from '#kube/writes/changed-or-gone.ts';
import { namespaces, pods } from '#shared/domain/core-kinds.ts';
import { keyOf, type Namespace, type ObjectRef, type Pod, refOf, refOfKey } from '#shared/domain/kube-object.ts';
import { label } from '#shared/domain/liqo-keys.ts';
import { again, type Outcome, settled, stalled, waiting } from '#shared/domain/outcome.ts';
import { codeOf } from '#shared/errors/app-error.ts';
import { messageOf } from '#shared/errors/message-of.ts';
import type { Configuration } from '#shared/schema/liqo/configuration.ts';
import { networkKinds } from '#shared/schema/liqo/network-resources.ts';
import { type ShadowPod, shadowPods } from '#shared/schema/liqo/shadow-pod.ts';
import { guestAnnotations, guestSpec, limitations } from '../guests/guest-spec.ts';
import { createRulebook, type Rulebook } from '../guests/rulebook.ts';
import { isNew, offloadedPodCache, shadowPodCache } from '../model/caches.ts';
import { mappedFor } from '../model/guest-namespace.ts';
import { ownerUid } from '../model/pod-owner.ts';
import { type CreationGate, createCreationGate } from '../quota/creation-gate.ts';
import { type Decision, decide } from './decide.ts';
import { type FirstSeen, firstSeen } from './first-seen.ts';
import { podOf } from './pod-object.ts';

export interface ShadowPodDeps extends ControllerDeps {
  readonly cluster: Cluster;
}

interface Caches {
  readonly shadows: Cache<ShadowPod>;
  readonly pods: Cache<Pod>;
  readonly namespaces: Cache<Namespace>;
  readonly configurations: Cache<Configuration>;
  readonly gate: CreationGate;
  readonly rulebook: Rulebook;
  /** Which ShadowPods have ended for certain, and which of them this process knows from their beginning. */
  readonly written: OwnWrites<ShadowPod>;
  readonly firstSeen: FirstSeen;
}

type Follow = Extract<Decision, { do: 'follow' }>;

/** A pass is a write: as many wait at a time as 20 pods a second need on an API server that is slow to answer. */
const workers = 20;
const retryMs = 30_000;
const staleMs = 100;
const quotaMs = 2_000;
/** A pod that starts at once is not worth two writes: that it is Pending is said of those that are so for longer. */
const pendingMs = 2_000;

export function createShadowPodController(deps: ShadowPodDeps): Controller {
  const { cluster } = deps;
  const shadows = shadowPodCache(cluster.caches);
  const offloaded = offloadedPodCache(cluster.caches);
  const written = new OwnWrites<ShadowPod>(deps);
  written.follow(shadows);
  const rulebook = createRulebook(cluster.caches);
  const caches: Caches = {
    shadows,
    pods: offloaded,
    namespaces: cluster.caches.cache(namespaces),
    configurations: cluster.caches.cache(networkKinds.configurations),
    gate: createCreationGate(rulebook, shadows, offloaded, written),
    rulebook,
    written,
    firstSeen: firstSeen(shadows, written),
  };
  return createController(
    {
      name: 'shadow-pod',
      workers,
      ownerOf: (key) => {
        const { namespace = '' } = refOfKey(key);
        return mappedFor(caches.namespaces.get({ name: namespace })) ?? namespace;
      },
      watches: [
        watch(caches.shadows, (shadow) => [keyOf(shadow)]),
        watch(caches.pods, (pod) => [keyOf(pod)]),
        // A toleration that is accepted from now on is added.
        watch(rulebook.policies, () => caches.shadows.list().map(keyOf)),
        // Read in each pass, so they must be in step before the first; their changes mean nothing to pods that run.
        watch(caches.namespaces, () => []),
        watch(rulebook.quotas, () => []),
        watch(caches.configurations, () => []),
      ],
      reconcile: (key, signal) => reconcile({ ...deps, ...caches }, refOfKey(key), signal),
    },
    deps,
  );
}

async function reconcile(deps: ShadowPodDeps & Caches, ref: ObjectRef, signal: AbortSignal): Promise<Outcome> {
  const { cluster, ...caches } = deps;
  const shadow = caches.shadows.get(ref);
  const pod = caches.pods.get(ref);
  const namespaceOrigin = shadow && !pod ? await originOf(cluster, caches, ref.namespace ?? '', signal) : undefined;
  const decision = decide({
    ...(shadow && { shadow: asAllowed(shadow, caches.rulebook) }),
    ...(pod && { pod }),
    ...(namespaceOrigin !== undefined && { namespaceOrigin }),
  });
  switch (decision.do) {
    case 'nothing':
      return settled;
    case 'create':
      return create(cluster, caches, ref, signal);
    case 'delete':
      return remove(cluster, caches.written, decision.pod, signal);
    case 'follow':
      if (shadow && isEarly(shadow, decision, deps.clock.now())) {
        const { phase: _, ...rest } = decision;
        const outcome = await follow(cluster, ref, rest, shadow, signal);
        return outcome.kind === 'settled' ? again(pendingMs) : outcome;
      }
      return follow(cluster, ref, decision, shadow, signal);
    case 'refuse':
      if (shadow) await explain(cluster, shadow, decision.reason, decision.message, signal);
      return waiting(decision.message, retryMs);
  }
}

/** As the rules for guests have it. What is filled in at creation stays out of the comparison with a living pod. */
function asAllowed(shadow: ShadowPod, rulebook: Rulebook, isNewPod = false): ShadowPod {
  const rules = rulebook.rulesOf(shadow.metadata.labels?.[label.origin] ?? '');
  const pod = isNewPod ? rulebook.podSpecOf(shadow) : guestSpec(shadow.spec.pod, rules, 'None');
  const before = shadow.metadata.annotations ?? {};
  const annotations = guestAnnotations(before, rules);
  if (pod === shadow.spec.pod && annotations === before) return shadow;
  return {
    ...shadow,
    metadata: { ...shadow.metadata, annotations: { ...annotations } },
    spec: { ...shadow.spec, pod },
  };
}

function isEarly(shadow: ShadowPod, { phase, pod }: Follow, now: number): boolean {
  const ageMs = now - Date.parse(String(pod.metadata.creationTimestamp));
  return phase === 'Pending' && isNew(shadow) && Math.abs(ageMs) < pendingMs;
}

/** The consumer for whom a NamespaceMap made this namespace. One that was made a moment ago may not be in the cache yet. */
async function originOf(
  { api }: Cluster,
  caches: Caches,
  name: string,
  signal: AbortSignal,
): Promise<string | undefined> {
  return mappedFor(caches.namespaces.get({ name })) ?? mappedFor(await api.get(namespaces, { name }, signal));
}

/** From the object as it is now, unless it has just come: the cache may not know yet that it is being deleted or has finished. */
async function create(
  cluster: Cluster,
  { gate, rulebook, configurations, ...caches }: Caches,
  ref: ObjectRef,
  signal: AbortSignal,
): Promise<Outcome> {
  const shadow = caches.firstSeen.take(ref) ?? (await cluster.api.get(shadowPods, ref, signal));
  if (!shadow || shadow.metadata.deletionTimestamp || isFinished(shadow)) return settled;
  const tooMuch = gate.enter(shadow);
  if (tooMuch !== undefined) {
    await explain(cluster, shadow, 'QuotaExceeded', tooMuch, signal);
    return waiting(tooMuch, quotaMs);
  }
  try {
    const origin = shadow.metadata.labels?.[label.origin];
    const ranges = configurations.list().find(({ metadata }) => metadata.labels?.[label.remoteClusterId] === origin);
    const here = (address: string): string => (ranges && viewOfPeer(address, ranges)) ?? address;
    await cluster.api.create(pods, podOf(asAllowed(shadow, rulebook, true), here), { answer: 'metadata' }, signal);
    for (const message of limitations(
      shadow.spec.pod,
      shadow.metadata.annotations ?? {},
      rulebook.rulesOf(origin ?? ''),
    ))
      cluster.events.emit(shadow, 'Warning', 'LimitedByProvider', message);
    return settled;
  } catch (error) {
    const code = codeOf(error);
    const why = messageOf(error);
    if (code === 'kube_already_exists') return collision(cluster, shadow, ref, signal);
    gate.leave(shadow);
    if (code !== 'kube_invalid' && code !== 'kube_forbidden') throw error;
    await explain(cluster, shadow, 'FailedCreatePod', why, signal);
    return waiting(`the API server to accept pod ${ref.name}: ${why}`, retryMs);
  }
}

/** Either the cache has not seen our own pod yet, or the name is taken by a pod that is none of our business. */
async function collision(cluster: Cluster, shadow: ShadowPod, ref: ObjectRef, signal: AbortSignal): Promise<Outcome> {
  const taken = await cluster.api.get(pods, ref, signal);
  if (!taken || ownerUid(taken) !== undefined) return again(staleMs);
  const message = `a pod named ${ref.name} exists here and was not made for this ShadowPod: it is left alone`;
  await explain(cluster, shadow, 'FailedCreatePod', message, signal);
  return waiting(message, retryMs);
}

/** As an Event here, and in the status, which the consumer reads and shows on its own pod. The phase stays: a pod that was let in has another. */
async function explain(
  { api, events }: Cluster,
  shadow: ShadowPod,
  reason: string,
  message: string,
  signal: AbortSignal,
): Promise<void> {
  events.emit(shadow, 'Warning', reason, message);
  const { status } = shadow;
  if (status?.reason === reason && status.message === message) return;
  const body = {
    metadata: { uid: shadow.metadata.uid },
    status: { phase: status?.phase ?? 'Unknown', reason, message },
  };
  try {
    await api.mergePatch(shadowPods, refOf(shadow), body, { subresource: 'status' }, signal);
  } catch (error) {
    if (!isChangedOrGone(error)) throw error;
  }
}

/** With the grace period that the pod itself asks for. */
async function remove(
  { api }: Cluster,
  written: Pick<OwnWrites<ShadowPod>, 'isGone'>,
  pod: Pod,
  signal: AbortSignal,
): Promise<Outcome> {
  const ref = refOf(pod);
  const owner = ownerUid(pod);
  if (!owner || !written.isGone(owner)) {
    const shadow = await api.get(shadowPods, ref, signal);
    if (shadow && shadow.metadata.uid === owner && !shadow.metadata.deletionTimestamp) return again(staleMs);
  }
  await api.delete(pods, ref, pod.metadata.uid ? { uid: pod.metadata.uid } : {}, signal);
  return settled;
}

async function follow(
  { api, events }: Cluster,
  ref: ObjectRef,
  { phase, metadata, spec, resize, ephemeralcontainers }: Follow,
  shadow: ShadowPod | undefined,
  signal: AbortSignal,
): Promise<Outcome> {
  try {
    if (phase !== undefined || shadow?.status?.reason !== undefined) {
      const status = { ...(phase !== undefined && { phase }), reason: null, message: null };
      await api.mergePatch(shadowPods, ref, { status }, { subresource: 'status', answer: 'metadata' }, signal);
    }
    if (metadata) await api.mergePatch(pods, ref, metadata, {}, signal);
    if (spec.length > 0) await api.jsonPatch(pods, ref, spec, {}, signal);
    if (ephemeralcontainers) {
      await api.jsonPatch(pods, ref, ephemeralcontainers, { subresource: 'ephemeralcontainers' }, signal);
    }
    if (resize) await api.jsonPatch(pods, ref, resize, { subresource: 'resize' }, signal);
    return settled;
  } catch (error) {
    const code = codeOf(error);
    if (code === 'kube_not_found') return settled; // Its event comes, or came.
    if (code !== 'kube_invalid' && code !== 'kube_forbidden') throw error;
    const why = messageOf(error);
    // A `test` of the patch: the pod is another one, or has changed since it was cached.
    if (why.includes('test failed')) return again(staleMs);
    if (shadow) events.emit(shadow, 'Warning', 'FailedUpdatePod', why);
    return stalled('FailedUpdatePod', why);
  }
}
