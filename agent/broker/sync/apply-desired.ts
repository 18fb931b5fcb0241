/** Brings this cluster to what the broker desires, one peering at a time, and remembers how far that got. */

import type { Cache, Cluster } from '#kube/model/types.ts';
import { namespaces } from '#shared/domain/core-kinds.ts';
import { sameJson } from '#shared/domain/json-equality.ts';
import type { KubeObject, Secret } from '#shared/domain/kube-object.ts';
import { isthmusAnnotation, isthmusLabel, label } from '#shared/domain/liqo-keys.ts';
import { gatewayKeys, networkName } from '#shared/domain/network-keys.ts';
import { type Outcome, settled, waiting } from '#shared/domain/outcome.ts';
import { isRetryable } from '#shared/errors/app-error.ts';
import type { Log } from '#shared/ports/log.ts';
import type { PeeringPolicy } from '#shared/schema/isthmus/peering-policy.ts';
import type { DesiredAnswer, DesiredSet, ObservedSet } from '#shared/schema/protocol/agent-protocol.ts';
import { brokerKind } from '../kinds/all.ts';
import { tenantNamespaceOf } from '../kinds/derived.ts';
import type { Distrust, PeerTrust } from '../trust/peer-trust.ts';
import { createDesiredWrites, foreignObject, manifestHash } from './desired-writes.ts';
import { manifestRejection } from './manifest-check.ts';
import { observedSet } from './observed-objects.ts';
import {
  carriersOf,
  derivedRefs,
  isEndedHere,
  type LiveObject,
  manifestRef,
  type PlanInput,
  planSet,
  refText,
  vanished,
} from './plan.ts';
import { linkRejection, policyFacts, policyRejection, trustPolicy } from './policy-check.ts';
import { type ChannelCaches, objectOf, watchedObjects } from './watched-objects.ts';

interface Progress {
  readonly revision: number;
  readonly refusals: ObservedSet['refusals'];
}

export interface DesiredState {
  /** Takes over an answer of the broker; returns the peerings that need a pass. */
  accept(answer: DesiredAnswer): readonly string[];
  revision(): number;
  /** One pass over one peering. */
  reconcile(peering: string, signal: AbortSignal): Promise<Outcome>;
  peerings(): Iterable<string>;
  /** The peerings that a changed object may concern. */
  peeringsOf(object: KubeObject): Iterable<string>;
  observed(): readonly ObservedSet[];
  /** Undefined: no such peering here. */
  peerOf(peering: string): string | undefined;
  /** The broker has these reports: peerings that it knows to have ended are forgotten. */
  acknowledged(reported: readonly ObservedSet[]): void;
}

export interface DesiredStateDeps {
  readonly cluster: Cluster;
  readonly caches: ChannelCaches;
  readonly policies: Cache<PeeringPolicy>;
  readonly trust: PeerTrust;
  readonly clusterId: string;
  /** This cluster's account at the broker. */
  readonly tenant?: string;
  readonly log: Log;
  /** Something was applied, removed or refused: the broker should get a report. */
  readonly onProgress: () => void;
  /** This peering needs another pass: what it leaves to another peering of the pair has changed. */
  readonly again?: (peering: string) => void;
}

export function createDesiredState({
  cluster,
  caches,
  policies,
  trust,
  clusterId,
  tenant,
  log,
  onProgress,
  again = () => undefined,
}: DesiredStateDeps): DesiredState {
  const writes = createDesiredWrites({ cluster, log });
  const sets = new Map<string, DesiredSet>();
  const progress = new Map<string, Progress>();
  /** Absent sets that were clean once: from then on the agent only reports them empty, and touches no object. */
  const ended = new Set<string>();
  /** Present sets that a user of this cluster ended: none of their objects is made again, and the report says so. */
  const endedHere = new Set<string>();
  /** The carriers of each present set in its last pass. */
  const carried = new Map<string, readonly LiveObject[]>();
  /** Present sets of which nothing may be applied at present: no other set leaves anything to them. */
  const held = new Set<string>();
  /** Present sets of which nothing is left that was applied under a key that is not the peer's. */
  const takenBack = new Set<string>();
  /** Identifiers of objects that have the label of a peering, and that no broker applied. */
  const spared = new Set<string>();
  let revision = 0;

  function forget(peering: string): void {
    for (const book of [sets, progress, ended, endedHere, carried, held, takenBack]) book.delete(peering);
  }

  function accept(answer: DesiredAnswer): readonly string[] {
    revision = Math.max(revision, answer.revision);
    if (answer.full) {
      // Objects of peerings that the broker no longer mentions stay: only an explicit `absent` set removes anything.
      revision = answer.revision;
      const kept = new Set(answer.sets.map((set) => set.peering));
      for (const peering of sets.keys()) {
        if (!kept.has(peering)) forget(peering);
      }
    }
    for (const set of answer.sets) {
      if (set.state === 'present') ended.delete(set.peering);
      sets.set(set.peering, set);
    }
    return answer.sets.map((set) => set.peering);
  }

  /**
   * The objects that other present sets want, and those of them that newer sets want: two peerings of a pair share a namespace and a link. What a set
   * of another peer names there is not that peer's: it is refused, and holds nothing back.
   */
  function elsewhere(set: DesiredSet): Required<Pick<PlanInput, 'wantedElsewhere' | 'leftToOthers'>> {
    const wanted = new Set<string>();
    const newer = new Set<string>();
    for (const other of sets.values()) {
      if (other.peering === set.peering || other.state !== 'present' || other.peer !== set.peer) continue;
      for (const manifest of other.objects) {
        for (const ref of [refText(manifest.kind, manifestRef(manifest)), ...derivedRefs(manifest)]) {
          wanted.add(ref);
          if (other.revision > set.revision && !held.has(other.peering) && !brokerKind(manifest.kind)?.isHome)
            newer.add(ref);
        }
      }
    }
    return { wantedElsewhere: wanted, leftToOthers: newer };
  }

  function hold(set: DesiredSet, isHeld: boolean): void {
    if (held.has(set.peering) === isHeld) return;
    if (isHeld) held.add(set.peering);
    else held.delete(set.peering);
    for (const other of sets.values())
      if (other.peer === set.peer && other.peering !== set.peering) again(other.peering);
  }

  /** A later peering of the same pair has begun: derived objects of the ended one are gone, and those that exist now belong to the later one. */
  const isSuperseded = (set: DesiredSet): boolean =>
    set.state === 'absent' &&
    [...sets.values()].some((other) => other.state === 'present' && other.peer === set.peer && other.role === set.role);
  const view = (set: DesiredSet) => watchedObjects(caches, set, isSuperseded(set));
  const liveOf = (set: DesiredSet): readonly LiveObject[] => view(set).live.filter(({ uid }) => !spared.has(uid));

  async function removeAll(objects: readonly LiveObject[], signal: AbortSignal): Promise<void> {
    for (const object of objects) if (!(await writes.remove(object, signal))) spared.add(object.uid);
  }

  async function reconcile(peering: string, signal: AbortSignal): Promise<Outcome> {
    const set = sets.get(peering);
    if (!set) return settled;
    if (ended.has(peering)) {
      progress.set(peering, { revision: set.revision, refusals: [] });
      onProgress();
      return settled;
    }
    const refusals: ObservedSet['refusals'] = [];
    const facts = policies.list().map(policyFacts);
    const forbidden = policyRejection(set, facts, tenant);
    for (const manifest of set.objects) {
      const rejection =
        forbidden === undefined
          ? (manifestRejection(set, manifest, clusterId) ?? linkRejection(set, manifest, facts, tenant))
          : { code: 'policy_refused', message: forbidden };
      if (rejection) refusals.push({ object: refText(manifest.kind, manifestRef(manifest)), ...rejection });
    }
    const untrusted = forbidden === undefined ? await distrust(set, signal) : undefined;
    if (untrusted !== undefined) {
      const { code, message, only = set.objects } = untrusted;
      for (const manifest of only)
        refusals.push({ object: refText(manifest.kind, manifestRef(manifest)), code, message });
    }
    if (sets.get(peering) === set)
      hold(set, forbidden !== undefined || (untrusted !== undefined && untrusted.only === undefined));
    const live = liveOf(set);
    if (untrusted?.takeBack) return takeBack(set, live, refusals, signal);
    takenBack.delete(peering);
    const isEnded = endedHere.has(peering)
      ? set.state === 'present'
      : isEndedHere(set, live) || (await hasVanished(set, live, signal));
    if (isEnded) return endHere(set, live, signal);
    carried.set(peering, carriersOf(set, live));
    const plan = planSet({
      set,
      live,
      ...elsewhere(set),
      refused: new Set(refusals.map((refusal) => refusal.object)),
      hashOf: manifestHash,
    });
    if (plan.markPeerDead) await writes.markPeerDead(set, signal);
    let transient: unknown;
    for (const manifest of plan.apply) {
      const isKnown = live.some(
        (one) =>
          one.peering !== undefined && refText(one.kind, one.ref) === refText(manifest.kind, manifestRef(manifest)),
      );
      const failure =
        isKnown || !(await writes.isForeign(manifest, signal))
          ? await writes.apply(set, manifest, signal)
          : foreignObject(manifest);
      if (failure === undefined) continue;
      refusals.push(failure.refusal);
      if (isRetryable(failure.error)) transient ??= failure.error;
    }
    await removeAll(plan.remove, signal);
    if (plan.apply.length + plan.remove.length > 0) {
      log.info('desired set applied', {
        peering,
        applied: plan.apply.length,
        removed: plan.remove.length,
        revision: set.revision,
        ...traced(set),
      });
    }
    if (refusals.length > 0 && !sameJson(progress.get(peering)?.refusals ?? [], refusals))
      log.warn('objects of a desired set are refused', { peering, refusals, ...traced(set) });
    if (plan.clean) ended.add(peering);
    const isDone = sets.get(peering) === set && plan.waitingOn === undefined;
    progress.set(peering, { revision: isDone ? set.revision : (progress.get(peering)?.revision ?? 0), refusals });
    onProgress();
    // The refusal is in the report; the queue tries again with back-off.
    if (transient !== undefined) throw transient;
    return plan.waitingOn === undefined ? settled : waiting(plan.waitingOn, 5_000);
  }

  /** Removes what was applied of the peer, without waiting for the peer, in the order in which a peering ends. The report has why. */
  async function takeBack(
    set: DesiredSet,
    live: readonly LiveObject[],
    refusals: ObservedSet['refusals'],
    signal: AbortSignal,
  ): Promise<Outcome> {
    const isOfPeer = (other: DesiredSet) => other.peer === set.peer && other.state === 'present';
    const ending: DesiredSet = { ...set, state: 'absent', peerDead: true, objects: [] };
    const plan = planSet({ set: ending, live, wantedElsewhere: new Set(), refused: new Set(), hashOf: manifestHash });
    if (plan.markPeerDead) await writes.markPeerDead(set, signal);
    await removeAll(plan.remove, signal);
    if (plan.remove.length > 0)
      log.warn("what was applied under a key that is not the peer's is taken back", {
        peering: set.peering,
        peer: set.peer,
        removed: plan.remove.length,
      });
    // Its carriers go by this hand and not by a user's.
    carried.delete(set.peering);
    progress.set(set.peering, { revision: progress.get(set.peering)?.revision ?? 0, refusals });
    onProgress();
    if (!plan.clean) return waiting(plan.waitingOn ?? 'the removal of what was applied', 1_000);
    takenBack.add(set.peering);
    const ofPeer = [...sets.values()].filter(isOfPeer);
    if (!ofPeer.every(({ peering }) => takenBack.has(peering))) return settled;
    // The cache of TrustedPeers has no event for this room's own write: the next pass finds the peer without a key.
    if (await trust.takenBack(set.peer, signal)) for (const { peering } of ofPeer) again(peering);
    return settled;
  }

  /** Why this cluster takes no word about the peer of a present set from the broker; undefined: it does. */
  async function distrust(set: DesiredSet, signal: AbortSignal): Promise<Distrust | undefined> {
    if (set.state !== 'present') return undefined;
    const question = {
      ...trustPolicy(set, policies.list(), tenant),
      configuration: objectOf(caches, set, 'Configuration', set.peer),
    };
    return trust.check(set, question, signal);
  }

  /** Whether a carrier is gone from the cache and, when asked, from the API server. */
  async function hasVanished(set: DesiredSet, live: readonly LiveObject[], signal: AbortSignal): Promise<boolean> {
    const gone = vanished(set, live, carried.get(set.peering) ?? []);
    const type = brokerKind(gone?.kind ?? '')?.type;
    return gone !== undefined && type !== undefined && (await cluster.api.get(type, gone.ref, signal)) === undefined;
  }

  /** Recorded in the cluster, too: an agent that restarts before its report has arrived would make all objects again. */
  async function endHere(set: DesiredSet, live: readonly LiveObject[], signal: AbortSignal): Promise<Outcome> {
    const home = live.find(({ kind, ref }) => brokerKind(kind)?.isHome && ref.name === tenantNamespaceOf(set));
    if (home !== undefined && !home.deleting && home.ended !== set.peering) {
      const patch = { metadata: { annotations: { [isthmusAnnotation.ended]: set.peering } } };
      await cluster.api.mergePatch(namespaces, home.ref, patch, {}, signal);
    }
    if (!endedHere.has(set.peering))
      log.info('a peering was ended in this cluster', { peering: set.peering, ...traced(set) });
    endedHere.add(set.peering);
    progress.set(set.peering, { revision: set.revision, refusals: [] });
    onProgress();
    return waiting('the broker to end the peering on both sides', 60_000);
  }

  function* peeringsOf(object: KubeObject): Iterable<string> {
    const own = object.metadata.labels?.[isthmusLabel.peering];
    const peer = object.metadata.labels?.[label.remoteClusterId];
    for (const set of sets.values()) if (set.peering === own || set.peer === peer) yield set.peering;
  }

  function observed(): readonly ObservedSet[] {
    const announce = trust.announcements();
    return [...sets.values()].map((set) => {
      const done = progress.get(set.peering);
      const observed = observedSet(
        set,
        done?.revision ?? 0,
        ended.has(set.peering) ? [] : view(set).observed,
        done?.refusals ?? [],
        endedHere.has(set.peering),
      );
      const announcement = set.state === 'present' ? announce(set.peer, gatewayKey(set)) : undefined;
      return announcement === undefined ? observed : { ...observed, announcement };
    });
  }

  /** base64, of this cluster's gateway to the peer; undefined: there is none yet. */
  const gatewayKey = (set: DesiredSet): string | undefined =>
    (objectOf(caches, set, 'Secret', networkName.gateway(set.peer)) as Secret | undefined)?.data?.[
      gatewayKeys.publicKey
    ];

  function acknowledged(reported: readonly ObservedSet[]): void {
    for (const { peering, appliedRevision } of reported) {
      if (!ended.has(peering) || (sets.get(peering)?.revision ?? 0) > appliedRevision) continue;
      forget(peering);
    }
  }

  return {
    acknowledged,
    accept,
    revision: () => revision,
    reconcile,
    peerings: () => sets.keys(),
    peeringsOf,
    observed,
    peerOf: (peering) => sets.get(peering)?.peer,
  };
}

/** By this the log of the broker, its audit log and this log are read together. */
const traced = ({ requestId }: DesiredSet) => (requestId === undefined ? {} : { requestId });
