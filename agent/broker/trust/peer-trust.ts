/** Keeps the TrustedPeers: decides about each desired set, remembers the keys that are trusted, and shows what an administrator has to decide. */
import type { Cache, Cluster } from '#kube/model/types.ts';
import { KeyedMutex } from '#shared/async/keyed-mutex.ts';
import { sameJson } from '#shared/domain/json-equality.ts';
import type { KubeObject } from '#shared/domain/kube-object.ts';
import { fieldManager } from '#shared/domain/liqo-keys.ts';
import { type PeeringLock, peeringLocks } from '#shared/schema/isthmus/peering-lock.ts';
import type { TrustMode } from '#shared/schema/isthmus/peering-policy.ts';
import { type TrustedPeer, type TrustedPeerStatus, trustedPeers } from '#shared/schema/isthmus/trusted-peer.ts';
import type { ClusterFacts, DesiredSet, KubeManifest, PeeringRole } from '#shared/schema/protocol/agent-protocol.ts';
import { type AnnouncerDeps, createAnnouncer } from './announcer.ts';
import { decideTrust, type Refused, type TrustDecision } from './decide.ts';
import { type ProofInput, type Unproven, unproven } from './proof.ts';

interface TrustQuestion {
  /** As the PeeringPolicies that allow the peer say. */
  readonly modes: readonly TrustMode[];
  readonly accepts: boolean;
  /** The Configuration of the peer in this cluster, if there is one. */
  readonly configuration: KubeObject | undefined;
}

export interface Distrust extends Refused {
  /** Of the set, what waits; the rest may be applied. Absent: all of it is refused. */
  readonly only?: readonly KubeManifest[];
}

export interface PeerTrust {
  /** Why nothing of the set may be applied, or not yet a part of it; undefined: all of it may. Remembers what it decides. */
  check(set: DesiredSet, question: TrustQuestion, signal: AbortSignal): Promise<Distrust | undefined>;
  /** Nothing is left of what was applied under a key that `check` had taken back: the peer is one without a known key. Whether that is news. */
  takenBack(peer: string, signal: AbortSignal): Promise<boolean>;
  /** What this cluster says of itself at present, to each of many peers. */
  announcements(): (peer: string, wireGuardKey: string | undefined) => string | undefined;
}

export interface PeerTrustDeps extends AnnouncerDeps {
  readonly cluster: Cluster;
  readonly facts: () => ClusterFacts;
}

const conditionOf = { consumer: 'AsConsumer', provider: 'AsProvider' } as const;

/** A broker names peers as it likes: so many that are not trusted get an object, for an administrator to look at. */
const mostPending = 50;

export type PeerTrustSource = PeerTrust & {
  ready(signal: AbortSignal): Promise<void>;
  readonly peers: Cache<TrustedPeer>;
  /** Whether an administrator changed or deleted the object since the last call: this room's own writes to its status change nothing. */
  isChangedByAdministrator(peer: TrustedPeer): boolean;
  readonly locks: Cache<PeeringLock>;
};

export function createPeerTrust(deps: PeerTrustDeps): PeerTrustSource {
  const { cluster, clusterId, tenant, clock } = deps;
  const cache = cluster.caches.cache(trustedPeers);
  const locks = cluster.caches.cache(peeringLocks);
  const announce = createAnnouncer(deps);
  /** By peer: what its object said when its sets were last looked at for it. */
  const decided = new Map<string, string>();
  /** What was written last: the cache may be behind, and a version must never be forgotten. */
  const written = new Map<string, { readonly uid: string; readonly status: TrustedPeerStatus }>();

  function knownPeer(peer: string): TrustedPeer | undefined {
    const stored = cache.get({ name: peer });
    const mine = written.get(peer);
    if (stored === undefined || mine === undefined || mine.uid !== stored.metadata.uid) return stored;
    const isBehind = (mine.status.announcedAt ?? 0) > (stored.status?.announcedAt ?? 0);
    return isBehind ? { ...stored, status: mine.status } : stored;
  }

  /** Both roles of a pair write one object: the second one decides by what the first has written. */
  const mutex = new KeyedMutex();

  async function remember(
    peer: string,
    known: TrustedPeer | undefined,
    status: TrustedPeerStatus,
    signal: AbortSignal,
  ): Promise<void> {
    if (known !== undefined && sameJson(known.status, status)) return;
    const object = { apiVersion: 'isthmus.dev/v1alpha1', kind: 'TrustedPeer', metadata: { name: peer } } as const;
    const by = { fieldManager: fieldManager.agent };
    // Empty: what an administrator wrote into spec stays.
    const made = known ?? (await cluster.api.apply(trustedPeers, object as unknown as TrustedPeer, by, signal));
    await cluster.api.apply(
      trustedPeers,
      { ...object, status } as unknown as TrustedPeer,
      { ...by, subresource: 'status' },
      signal,
    );
    written.set(peer, { uid: made.metadata.uid ?? '', status });
  }

  function nextStatus(
    role: PeeringRole,
    known: TrustedPeer | undefined,
    { refused, remember: news }: TrustDecision,
  ): TrustedPeerStatus {
    const type = conditionOf[role];
    const { conditions = [], offered: _, trustedSince, ...before } = known?.status ?? {};
    const now = new Date(clock.now()).toISOString();
    const status = refused === undefined ? ('True' as const) : ('False' as const);
    const reason = refused === undefined ? 'Agreed' : camel(refused.code);
    const message = refused?.message ?? 'what its cluster has signed is applied';
    const last = conditions.find((one) => one.type === type);
    const since = last?.status === status ? last.lastTransitionTime : now;
    const others = conditions.filter((one) => one.type !== type);
    const next = { ...before, ...news };
    const isSameKey = trustedSince !== undefined && before.fingerprint === next.fingerprint;
    return {
      ...next,
      ...(next.key === undefined ? {} : { trustedSince: isSameKey ? trustedSince : now }),
      conditions: [...others, { type, status, reason, message, lastTransitionTime: since }].sort((a, b) =>
        a.type < b.type ? -1 : 1,
      ),
    };
  }

  function look(set: DesiredSet, { modes, accepts, configuration }: TrustQuestion, known: TrustedPeer | undefined) {
    const decision = decideTrust({ set, self: { clusterId, tenant }, known, locks: locks.list(), modes, accepts });
    const { announcement } = decision;
    const faults =
      decision.refused === undefined && announcement !== undefined
        ? faultsIn(set, { set, self: clusterId, announcement, configuration })
        : [];
    const fault = faults.find(({ isEarly }) => !isEarly);
    // What does not prove true is not remembered as the newest version either.
    const verdict: TrustDecision =
      fault === undefined ? decision : { refused: { code: 'peer_unproven', message: fault.message }, remember: {} };
    return { faults, verdict, status: nextStatus(set.role, known, verdict) };
  }

  const pendingPeers = (): number => cache.list().filter((peer) => peer.status?.key === undefined).length;

  async function check(set: DesiredSet, question: TrustQuestion, signal: AbortSignal): Promise<Distrust | undefined> {
    let known = knownPeer(set.peer);
    let seen = look(set, question, known);
    if (known === undefined || !sameJson(known.status, seen.status)) {
      // The cache may be behind: a key must not be the first one twice, nor an agreement be lost.
      known = await cluster.api.get(trustedPeers, { name: set.peer }, signal);
      seen = look(set, question, known);
    }
    const { faults, verdict, status } = seen;
    if (known !== undefined || verdict.refused === undefined || pendingPeers() < mostPending)
      await remember(set.peer, known, status, signal);
    const [early] = faults;
    if (verdict.refused !== undefined || early === undefined) return verdict.refused;
    return { code: 'peer_unproven', message: early.message, only: faults.map(({ manifest }) => manifest) };
  }

  async function takenBack(peer: string, signal: AbortSignal): Promise<boolean> {
    const known = await cluster.api.get(trustedPeers, { name: peer }, signal);
    if (known?.status?.key === undefined && known?.status?.agreed === undefined) return false;
    const { conditions, revoked, consentKey, offered } = known.status;
    const left = {
      ...(conditions && { conditions }),
      ...(revoked && { revoked }),
      ...(consentKey && { consentKey }),
      ...(offered && { offered }),
    };
    await remember(peer, known, left, signal);
    return true;
  }

  return {
    async takenBack(peer, signal) {
      let isNews = false;
      await mutex.run(peer, signal, async () => {
        isNews = await takenBack(peer, signal);
      });
      return isNews;
    },
    async ready(signal) {
      await Promise.all([cache.synced(signal), locks.synced(signal)]);
    },
    peers: cache,
    isChangedByAdministrator({ metadata: { name } }) {
      const now = cache.get({ name });
      const text = now === undefined ? '' : JSON.stringify([now.metadata.uid, now.spec ?? {}]);
      if (decided.get(name) === text) return false;
      decided.set(name, text);
      return true;
    },
    locks,
    async check(set, question, signal) {
      let distrust: Distrust | undefined;
      await mutex.run(set.peer, signal, async () => {
        distrust = await check(set, question, signal);
      });
      // The mutex returns without having run the work once the signal has aborted: no verdict must not read as consent.
      signal.throwIfAborted();
      return distrust;
    },
    announcements() {
      const facts = deps.facts();
      const lock = locks.list().find(({ metadata }) => metadata.name === tenant);
      return (peer, wireGuardKey) => announce(peer, { facts, lock, wireGuardKey });
    },
  };
}

interface Fault extends Unproven {
  readonly manifest: KubeManifest;
}

const faultsIn = (set: DesiredSet, input: ProofInput): Fault[] =>
  set.objects.flatMap((manifest) => {
    const fault = unproven(manifest, input);
    if (fault === undefined) return [];
    return [{ ...fault, manifest, message: `${manifest.kind} ${manifest.metadata.name}: ${fault.message}` }];
  });

/** Reasons of conditions are CamelCase. */
const camel = (code: string): string =>
  code.replaceAll(/(?:^|_)([a-z])/g, (_match, letter: string) => letter.toUpperCase());
