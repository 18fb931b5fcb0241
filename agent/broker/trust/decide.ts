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
}

export interface TrustDecision {
  /** Undefined: the set may be applied, as far as `announcement` proves it. */
  readonly refused?: Refused;
  /** Absent while nothing is refused: the broker is believed. */
  readonly announcement?: Announcement;
  readonly remember: Remembered;
}

type TrustedBy = NonNullable<TrustedPeerStatus['trustedBy']>;

const refuse = (code: Refused['code'], message: string, remember: Remembered = {}): TrustDecision => ({
  refused: { code, message },
  remember,
});

export function decideTrust(input: TrustInput): TrustDecision {
  const { set, known, modes } = input;
  const isNamed = known?.spec?.fingerprint !== undefined || known?.status?.key !== undefined;
  const consent = consentOf(input);
  if (modes.includes('Broker') && !isNamed) {
    return consent.refused ? { refused: consent.refused, remember: {} } : { remember: consent.remember };
  }
  if (set.announcement === undefined) {
    return refuse(
      'peer_unproven',
      `waits for what ${set.peer} announces of itself: the broker has passed on nothing that ${set.peer} signed`,
    );
  }
  const announcement = readAnnouncement(set.announcement);
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
  const remember: Remembered = {
    key: announcement.claims.key,
    fingerprint: announcement.fingerprint,
    tenant: announcement.claims.tenant,
    trustedBy: trusted,
    announcedAt: announcement.claims.at,
    ...lockMemory(input, announcement),
  };
  if (consent.refused) return { refused: consent.refused, announcement, remember };
  return { announcement, remember: { ...remember, ...consent.remember } };
}

const timeOf = (at: number): string => new Date(Math.min(at, 8.64e15)).toISOString();

function misdirection({ set, self }: TrustInput, { claims }: Announcement): string | undefined {
  const { sender, receiver, tenant } = claims;
  // This cluster signs for any peer that the broker names: for its own name, too.
  if (sender === self.clusterId) return `the broker presents ${sender} as a peer of itself`;
  if (sender !== set.peer) return `the announcement is of ${sender}, accepted is that of ${set.peer}`;
  if (receiver !== self.clusterId) return `the announcement of ${sender} is for ${receiver}, not for ${self.clusterId}`;
  const stated = set.peerTenant ?? self.tenant;
  return tenant === stated
    ? undefined
    : `${sender} announces itself as a cluster of account ${tenant}, and the broker presents it as one of ${stated}`;
}

function trustedBy(input: TrustInput, announcement: Announcement): TrustedBy | TrustDecision {
  const { set, known, modes } = input;
  const { fingerprint, claims } = announcement;
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
    if (status.tenant !== undefined && status.tenant !== claims.tenant) {
      return refuse(
        'peer_key_refused',
        `${set.peer} was known as a cluster of account ${status.tenant} and now is of ${claims.tenant}; ${forget(set.peer)}`,
        offered,
      );
    }
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

function consentOf({
  set,
  known,
  accepts,
}: TrustInput): Pick<TrustDecision, 'refused'> & { readonly remember: Remembered } {
  const agreed = known?.status?.agreed ?? [];
  if (agreed.includes(set.role)) return { remember: {} };
  if (accepts || known?.spec?.consent?.includes(set.role))
    return { remember: { agreed: [...agreed, set.role].sort() } };
  const role = set.role === 'consumer' ? 'consumer of' : 'provider for';
  return {
    remember: {},
    refused: {
      code: 'consent_missing',
      message: `waits for an administrator of this cluster to agree to be ${role} ${set.peer}: kubectl patch trustedpeer ${set.peer} --type merge -p '{"spec":{"consent":["${set.role}"]}}'`,
    },
  };
}
