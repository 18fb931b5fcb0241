/** The announcements of this cluster, one for each peer: the same text until what it says changes, at most a day long, then a newer version. */
import { createPublicKey, type KeyObject } from 'node:crypto';
import { fingerprintOf } from '#agent/pki/cluster-keys.ts';
import type { Clock } from '#shared/ports/clock.ts';
import type { Log } from '#shared/ports/log.ts';
import type { PeeringLock } from '#shared/schema/isthmus/peering-lock.ts';
import { type ClusterFacts, longestAnnouncement } from '#shared/schema/protocol/agent-protocol.ts';
import { type Claims, caHashOf, signAnnouncement } from './announcement.ts';

export interface AnnouncerDeps {
  readonly clusterId: string;
  readonly tenant: string;
  readonly privateKey: KeyObject;
  /** base64: by the key before this one. */
  readonly succession?: string;
  readonly clock: Clock;
  readonly log: Log;
}

/**
 * A process whose predecessor had a clock that was ahead signs versions that peers have to refuse as old. It cannot know, so it signs again: peers
 * follow once its clock has passed the last version that they took.
 */
const renewedEveryMs = 24 * 3_600_000;

interface Announced {
  readonly facts: ClusterFacts;
  /** Of this cluster's account. */
  readonly lock: PeeringLock | undefined;
  /** base64, of the gateway to the peer. */
  readonly wireGuardKey: string | undefined;
}

/** Undefined where the cluster's key is of a kind other than Ed25519, or where what there is to say does not fit. */
export type Announcer = (peer: string, announced: Announced) => string | undefined;

export function createAnnouncer({ clusterId, tenant, privateKey, succession, clock, log }: AnnouncerDeps): Announcer {
  if (privateKey.asymmetricKeyType !== 'ed25519') return () => undefined;
  const publicKey = createPublicKey(privateKey);
  const key = publicKey.export({ type: 'spki', format: 'der' }).toString('base64');
  const fingerprint = fingerprintOf(publicKey);
  const last = new Map<string, { readonly claims: string; readonly at: number; readonly text: string | undefined }>();
  return (peer, { facts, lock, wireGuardKey }) => {
    const own = lock?.spec.own;
    const { network } = facts;
    const said: Omit<Claims, 'at'> = {
      purpose: 'peering',
      sender: clusterId,
      receiver: peer,
      tenant,
      key,
      ...(succession === undefined ? {} : { succession }),
      ...(own?.fingerprint === fingerprint ? { locks: own.signatures } : {}),
      apiServer: facts.apiServerUrl,
      caHash: caHashOf(facts.apiServerCa),
      ...(network === undefined
        ? {}
        : {
            network: {
              pod: network.podCidrs,
              external: network.externalCidrs,
              ...(network.apiServerProxy === undefined ? {} : { apiServerProxy: network.apiServerProxy }),
            },
          }),
      ...(wireGuardKey === undefined ? {} : { wireGuardKey }),
    };
    const claims = JSON.stringify(said);
    const before = last.get(peer);
    if (before?.claims === claims && clock.now() - before.at < renewedEveryMs) return before.text;
    // A clock that was set back while this process runs must not make the newer version the older one.
    const at = Math.max(clock.now(), (before?.at ?? 0) + 1);
    const text = signAnnouncement({ ...said, at }, privateKey);
    const isTooLong = text.length > longestAnnouncement;
    if (isTooLong) {
      log.warn('announcement is too long and is not sent: the peer cannot verify this cluster; use fewer ranges', {
        peer,
        characters: text.length,
        accepted: longestAnnouncement,
      });
    }
    last.set(peer, { claims, at, text: isTooLong ? undefined : text });
    return isTooLong ? undefined : text;
  };
}
