/** Clusters that claim one name, each with a key and addresses of its own, and what a broker says of them to rome. */
import { createPrivateKey, createPublicKey, type KeyObject, sign } from 'node:crypto';
import { type ClusterKeys, fingerprintOf, generateClusterKeys } from '#agent/pki/cluster-keys.ts';
import { lockText } from '#shared/domain/peering-lock.ts';
import type { DesiredSet, PeeringRole } from '#shared/schema/protocol/agent-protocol.ts';
import { caHashOf, signAnnouncement } from '../trust/announcement.ts';
import { factsOf, manifestsFor } from './lies.ts';

export const derOf = (key: KeyObject) =>
  createPublicKey(key).export({ type: 'spki', format: 'der' }).toString('base64');

interface Claimant {
  readonly keys: ClusterKeys;
  readonly privateKey: KeyObject;
  readonly tenant: string;
  readonly facts: ReturnType<typeof factsOf>;
  readonly fingerprint: string;
}

/** A cluster that is called milan, with addresses and a key of its own. */
export function claimant(seed: number, tenant = 'acme'): Claimant {
  const keys = generateClusterKeys();
  const privateKey = createPrivateKey(keys.privateKey);
  return { keys, privateKey, tenant, facts: factsOf(seed), fingerprint: fingerprintOf(createPublicKey(privateKey)) };
}
export const admin = createPrivateKey(generateClusterKeys().privateKey);
const signedBy = (lock: KeyObject, { tenant, fingerprint }: Claimant, at: number) => {
  const text = Buffer.from(lockText({ tenant, clusterId: 'milan', fingerprint, at }));
  return { key: derOf(lock), at, signature: sign(null, text, lock).toString('base64') };
};

interface More {
  readonly role?: PeeringRole;
  readonly lockedAt?: number;
  readonly succession?: string;
  readonly silent?: true;
}

/** What a broker says of the cluster that it presents as milan. */
export function presented(
  by: Claimant,
  peering: string,
  { role = 'consumer', lockedAt, succession, silent }: More = {},
) {
  const { facts, tenant } = by;
  const announcement = signAnnouncement(
    {
      purpose: 'peering',
      sender: 'milan',
      receiver: 'rome',
      tenant,
      at: 1,
      key: derOf(by.privateKey),
      ...(lockedAt === undefined ? {} : { locks: [signedBy(admin, by, lockedAt)] }),
      ...(succession === undefined ? {} : { succession }),
      apiServer: facts.apiServer,
      caHash: caHashOf(facts.ca),
      network: { pod: [facts.pod], external: [facts.external] },
      wireGuardKey: facts.wireGuardKey,
    },
    by.privateKey,
  );
  const set: Omit<DesiredSet, 'revision'> = {
    peering,
    role,
    peer: 'milan',
    state: 'present',
    peerDead: false,
    objects: manifestsFor(role, 'milan', facts, by.keys.publicKey),
    ...(tenant === 'acme' ? {} : { peerTenant: tenant }),
    ...(silent ? {} : { announcement }),
  };
  return set;
}
