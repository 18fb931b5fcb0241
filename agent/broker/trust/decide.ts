/** Whether documents of the broker about a peer may be applied: is the announcement the peer's, is its key trusted, has this cluster agreed. Pure. */
import { createPublicKey, type KeyObject } from 'node:crypto';
import { fingerprintOf, isSuccession, verifyWith } from '#agent/pki/cluster-keys.ts';
import { lockText } from '#shared/domain/peering-lock.ts';
import type { PeeringLock } from '#shared/schema/isthmus/peering-lock.ts';
import type { TrustMode } from '#shared/schema/isthmus/peering-policy.ts';
import type { TrustedPeer, TrustedPeerStatus } from '#shared/schema/isthmus/trusted-peer.ts';
import type { DesiredSet } from '#shared/schema/protocol/agent-protocol.ts';
import { type Announcement, readAnnouncement } from './announcement.ts';

export interface TrustInput {
  readonly set: Pick<DesiredSet, 'peer' | 'peerTenant' | 'role' | 'announcement'>;
  /** This cluster and its account at the broker. */
  readonly self: { readonly clusterId: string; readonly tenant: string };
  readonly known: TrustedPeer | undefined;
  readonly locks: readonly PeeringLock[];
  /** As the PeeringPolicies that allow this peer say. */
  readonly modes: readonly TrustMode[];
  /** One of these policies accepts the peering without an administrator. */
  readonly accepts: boolean;
}

/** What is remembered of the peer from now on; absent members stay as they were. */
type Remembered = Omit<TrustedPeerStatus, 'conditions' | 'trustedSince'>;

export interface Refused {
  readonly code: 'peer_unproven' | 'announcement_refused' | 'peer_key_refused' | 'consent_missing';
  readonly message: string;
  /** What was applied of this peer was applied under a key that is not the peer's: it is removed. */
  readonly takeBack?: true;
}

export interface TrustDecision {
  /** Undefined: the set may be applied, as far as `announcement` proves it. */
  readonly refused?: Refused;
  /** Absent while nothing is refused: the broker is believed. */
  readonly announcement?: Announcement;
  readonly remember: Remembered;
}

/** As many as a TrustedPeer holds. */
const mostRevoked = 16;

type TrustedBy = NonNullable<TrustedPeerStatus['trustedBy']>;

const refuse = (code: Refused['code'], message: string, remember: Remembered = {}): TrustDecision => ({
  refused: { code, message },
  remember,
});

export function decideTrust(input: TrustInput): TrustDecision {
  const { set, known, modes } = input;
  const announcement = set.announcement === undefined ? undefined : readAnnouncement(set.announcement);
  const early = contradiction(input, announcement);
  if (early !== undefined) return early;
  const isNamed = known?.spec?.fingerprint !== undefined || known?.status?.key !== undefined;
  if (modes.includes('Broker') && !isNamed) {
    const { refused, remember } = consentOf(input, undefined);
    return refused ? { refused, remember: {} } : { remember: { ...remember, tenant: statedTenant(input) } };
  }
  if (set.announcement === undefined) {
    return refuse(
      'peer_unproven',
      `waits for what ${set.peer} announces of itself: the broker has passed on nothing that ${set.peer} signed`,
    );
  }
  if (announcement === undefined)
    return refuse('announcement_refused', `the announcement of ${set.peer} is damaged, or its signature is not good`);
  const misdirected = misdirection(input, announcement);
  if (misdirected !== undefined) return refuse('announcement_refused', misdirected);
  const trusted = trustedBy(input, announcement);
  if (typeof trusted !== 'string') return { ...trusted, announcement };
  const last = known?.status?.fingerprint === announcement.fingerprint ? (known.status.announcedAt ?? 0) : 0;
  if (announcement.claims.at < last) {
    // An honest broker passes a newer one on for one peering of the pair before it does for the other.
    return refuse(
      'peer_unproven',
      `the announcement of ${set.peer} is of ${timeOf(announcement.claims.at)}, and one of ${timeOf(last)} was accepted before`,
    );
  }
  const { refused, isOtherKey, remember: agreed } = consentOf(input, announcement);
  // What the administrator agreed to stays bound to the former key.
  if (refused && isOtherKey) {
    const { agreed: _, ...bound } = agreed;
    return { refused, announcement, remember: { ...bound, offered: announcement.fingerprint } };
  }
  const { revoked } = known?.status ?? {};
  const remember: Remembered = {
    key: announcement.claims.key,
    fingerprint: announcement.fingerprint,
    tenant: announcement.claims.tenant,
    trustedBy: trusted,
    announcedAt: announcement.claims.at,
    ...lockMemory(input, announcement),
    ...(revoked === undefined ? {} : { revoked: revoked.filter((one) => one !== announcement.fingerprint) }),
    ...agreed,
  };
  return refused ? { refused, announcement, remember } : { announcement, remember };
}

const statedTenant = ({ set, self }: TrustInput): string => set.peerTenant ?? self.tenant;

/** A name at the broker passes from one account to another when its cluster is removed and a new one enrolled. */
function otherAccount(input: TrustInput): string | undefined {
  const { set, known } = input;
  const stated = statedTenant(input);
  const agreed = known?.spec?.tenant;
  if (agreed !== undefined)
    return agreed === stated
      ? undefined
      : `the broker presents ${set.peer} as a cluster of account ${stated}; TrustedPeer ${set.peer} names account ${agreed}`;
  const before = known?.status?.tenant;
  return before === undefined || before === stated
    ? undefined
    : `${set.peer} was known as a cluster of account ${before} and now is of ${stated}; ${forget(set.peer)}`;
}

/** Why nothing may be applied regardless of what was announced: the account is another one, or the key by which the peer is known is not its own. */
function contradiction(input: TrustInput, announcement: Announcement | undefined): TrustDecision | undefined {
  const { set, known, modes } = input;
  const { status = {}, spec } = known ?? {};
  const { key, fingerprint: before, trustedBy: by, revoked = [] } = status;
  const genuine =
    announcement === undefined || misdirection(input, announcement) !== undefined ? undefined : announcement;
  const presented = genuine?.fingerprint;
  const isSuccessor = genuine !== undefined && key !== undefined && isSucceeded(keyFrom(key), genuine);
  if (
    spec?.fingerprint !== undefined &&
    spec.fingerprint !== before &&
    !(isSuccessor && presented === spec.fingerprint)
  ) {
    // A peer that the broker was believed about has no key here: what it presents is what it had.
    const wrong = before ?? (status.agreed === undefined || presented === spec.fingerprint ? undefined : presented);
    if (wrong !== undefined)
      return takeBack(input, wrong, presented, `TrustedPeer ${set.peer} names ${spec.fingerprint}`);
  }
  const foreign = otherAccount(input);
  if (foreign !== undefined) return refuse('peer_key_refused', foreign);
  if (before === undefined || spec?.fingerprint !== undefined) return undefined;
  if (revoked.includes(before)) return takeBack(input, before, presented, 'a lock key named another one');
  const isLocked = modes.includes('Lock') && genuine !== undefined && lockTimeOf(input, genuine) !== undefined;
  if (by !== 'FirstUse' || presented === before || isSuccessor || !isLocked) return undefined;
  const account = statedTenant(input);
  return takeBack(
    input,
    before,
    presented,
    `the broker had presented it first; a lock key of account ${account} signed ${presented}`,
  );
}

function takeBack(
  { set, known }: TrustInput,
  wrong: string,
  presented: string | undefined,
  why: string,
): TrustDecision {
  return {
    refused: {
      code: 'peer_key_refused',
      message: `key ${wrong} is not that of ${set.peer}: ${why}. What was applied under it is taken back; nothing is applied about ${set.peer} before that is done`,
      takeBack: true,
    },
    remember: {
      revoked: [...new Set([...(known?.status?.revoked ?? []), wrong])].slice(-mostRevoked),
      ...(presented === undefined || presented === wrong ? {} : { offered: presented }),
    },
  };
}

const timeOf = (at: number): string => new Date(Math.min(at, 8.64e15)).toISOString();

function misdirection(input: TrustInput, { claims }: Announcement): string | undefined {
  const { set, self } = input;
  const { sender, receiver, tenant } = claims;
  // This cluster signs for any peer that the broker names: for its own name, too.
  if (sender === self.clusterId) return `the broker presents ${sender} as a peer of itself`;
  if (sender !== set.peer) return `the announcement is of ${sender}, accepted is that of ${set.peer}`;
  if (receiver !== self.clusterId) return `the announcement of ${sender} is for ${receiver}, not for ${self.clusterId}`;
  const stated = statedTenant(input);
  return tenant === stated
    ? undefined
    : `${sender} announces itself as a cluster of account ${tenant}, and the broker presents it as one of ${stated}`;
}

function trustedBy(input: TrustInput, announcement: Announcement): TrustedBy | TrustDecision {
  const { set, known, modes } = input;
  const { fingerprint } = announcement;
  const { status, spec } = known ?? {};
  const offered: Remembered = { offered: fingerprint };
  if (spec?.fingerprint !== undefined) {
    if (spec.fingerprint === fingerprint) return 'Object';
    return refuse(
      'peer_key_refused',
      `the broker presents ${set.peer} with key ${fingerprint}; TrustedPeer ${set.peer} names ${spec.fingerprint}`,
      offered,
    );
  }
  const lockedAt = lockTimeOf(input, announcement);
  if (status?.key !== undefined) {
    const former = keyFrom(status.key);
    const by = status.trustedBy ?? 'FirstUse';
    if (former !== undefined && fingerprintOf(former) === fingerprint) return by;
    if (isSucceeded(former, announcement)) return by;
    // A key that the lock vouches for takes the place of one that it vouched for earlier: its administrators set up the cluster again.
    if (modes.includes('Lock') && by === 'Lock' && lockedAt !== undefined && lockedAt > (status.lockedAt ?? 0))
      return 'Lock';
    return refuse(
      'peer_key_refused',
      `${set.peer} is known by key ${status.fingerprint} and is now presented with ${fingerprint}; if its administrator confirms that key: ${agree(set.peer, fingerprint)}`,
      offered,
    );
  }
  if (status?.revoked?.includes(fingerprint)) {
    return refuse(
      'peer_key_refused',
      `${set.peer} is presented with key ${fingerprint}, which was revoked here; if its administrator confirms that key after all: ${agree(set.peer, fingerprint)}`,
      offered,
    );
  }
  if (modes.includes('Lock') && lockedAt !== undefined) return 'Lock';
  if (modes.includes('FirstUse')) return 'FirstUse';
  return refuse(
    'peer_key_refused',
    `${set.peer} is presented with key ${fingerprint}, which this cluster does not know (spec.trust of the PeeringPolicy: ${modes.join(', ')})${joinedBy(input, announcement)}; if its administrator confirms that key: ${agree(set.peer, fingerprint)}`,
    offered,
  );
}

/** Two machines, two lock keys: the usual reason for which clusters of one account do not know each other. */
function joinedBy({ locks }: TrustInput, { claims: { tenant, locks: shown = [] } }: Announcement): string {
  if (shown.length === 0) return ', and no lock key signed it';
  const known = locks.some(({ metadata }) => metadata.name === tenant);
  return `: it was signed by another lock key than ${known ? `those that this cluster trusts for account ${tenant}` : `this cluster trusts, as it trusts none for account ${tenant}`}. If the administrator who joined it says that \`isthmus lock show\` prints KEY, run for each of the two clusters: isthmus lock trust KEY --tenant ${tenant} --kubeconfig FILE`;
}

const agree = (peer: string, fingerprint: string): string =>
  `kubectl patch trustedpeer ${peer} --type merge -p '{"spec":{"fingerprint":"${fingerprint}"}}'`;
const forget = (peer: string): string => `if that is right: kubectl delete trustedpeer ${peer}`;

function isSucceeded(former: KeyObject | undefined, { key, claims }: Announcement): boolean {
  if (former === undefined || claims.succession === undefined) return false;
  return isSuccession(former, key, Buffer.from(claims.succession, 'base64'));
}

/** When a lock key that this cluster knows signed the key for this cluster and account; the latest time. Undefined: none did. */
function lockTimeOf({ set, locks }: TrustInput, { claims, fingerprint }: Announcement): number | undefined {
  const { tenant } = claims;
  const known = locks.filter(({ metadata }) => metadata.name === tenant).flatMap(({ spec }) => spec.keys);
  const times = (claims.locks ?? []).flatMap(({ key: der, at, signature }) => {
    const key = known.some((one) => one.key === der) ? keyFrom(der) : undefined;
    const text = Buffer.from(lockText({ tenant, clusterId: set.peer, fingerprint, at }));
    const isSigned = key?.asymmetricKeyType === 'ed25519' && verifyWith(key, text, Buffer.from(signature, 'base64'));
    return isSigned ? [at] : [];
  });
  return times.length === 0 ? undefined : Math.max(...times);
}

function lockMemory(input: TrustInput, announcement: Announcement): Remembered {
  const at = Math.max(lockTimeOf(input, announcement) ?? 0, input.known?.status?.lockedAt ?? 0);
  return at === 0 ? {} : { lockedAt: at };
}

function keyFrom(der: string): KeyObject | undefined {
  try {
    return createPublicKey({ key: Buffer.from(der, 'base64'), format: 'der', type: 'spki' });
  } catch {
    return undefined;
  }
}

/**
 * Consent is bound to a key: what was agreed to under one is not agreed to under another, unless the former key signed that, an administrator named
 * it, or a policy accepts any peer that it trusts. `announcement` is of a trusted key; undefined: no key is asked for.
 */
function consentOf(
  input: TrustInput,
  announcement: Announcement | undefined,
): Pick<TrustDecision, 'refused' | 'remember'> & { readonly isOtherKey: boolean } {
  const { set, known, accepts } = input;
  const { status = {}, spec = {} } = known ?? {};
  const presented = announcement?.fingerprint;
  const isOtherKey =
    announcement !== undefined &&
    status.key !== undefined &&
    status.fingerprint !== presented &&
    !isSucceeded(keyFrom(status.key), announcement);
  const agreed = isOtherKey ? [] : (status.agreed ?? []);
  const consentKey = consentKeyOf(input, presented, isOtherKey);
  const remember: Remembered = {
    ...(consentKey === undefined ? {} : { consentKey }),
    ...(isOtherKey ? { agreed } : {}),
  };
  if (agreed.includes(set.role)) return { remember, isOtherKey };
  const isAsked = spec.consent?.includes(set.role) === true;
  if (accepts || (isAsked && consentKey === presented))
    return { remember: { ...remember, agreed: [...agreed, set.role].sort() }, isOtherKey };
  const role = set.role === 'consumer' ? 'consumer of' : 'provider for';
  const patch = JSON.stringify({ spec: { ...(isAsked ? { fingerprint: presented } : {}), consent: [set.role] } });
  const why = isAsked ? `, which it agreed to with key ${consentKey} and not with ${presented}` : '';
  return {
    remember,
    isOtherKey,
    refused: {
      code: 'consent_missing',
      message: `waits for an administrator of this cluster to agree to be ${role} ${set.peer}${why}: kubectl patch trustedpeer ${set.peer} --type merge -p '${patch}'`,
    },
  };
}

/** For which key spec.consent counts; undefined: there is none, or no key is asked for. */
function consentKeyOf({ known }: TrustInput, presented: string | undefined, isOtherKey: boolean): string | undefined {
  const { status = {}, spec = {} } = known ?? {};
  if (presented === undefined || spec.consent === undefined) return undefined;
  if (spec.fingerprint === presented) return presented;
  if (status.consentKey === undefined) return isOtherKey ? status.fingerprint : presented;
  return status.consentKey === status.fingerprint && !isOtherKey ? presented : status.consentKey;
}
