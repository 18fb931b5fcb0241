/** The name of a peer under another key or account: what was agreed to stays with the former, and what was applied under a wrong key is taken back. */
import type { KeyObject } from 'node:crypto';
import { describe, expect, test } from 'vitest';
import { signSuccession } from '#agent/pki/cluster-keys.ts';
import type { Cache } from '#kube/model/types.ts';
import type { KubeObject } from '#shared/domain/kube-object.ts';
import { silentLog } from '#shared/ports/log.ts';
import { systemClock } from '#shared/ports/system-clock.ts';
import { peeringPolicies, type TrustMode } from '#shared/schema/isthmus/peering-policy.ts';
import { type TrustedPeer, trustedPeers } from '#shared/schema/isthmus/trusted-peer.ts';
import type { ClusterFacts, DesiredSet } from '#shared/schema/protocol/agent-protocol.ts';
import { RememberingCluster } from '#test/harness/remembering-cluster.ts';
import { createDesiredState } from '../sync/apply-desired.ts';
import { brokerCaches } from '../sync/watched-objects.ts';
import { admin, claimant, derOf, presented } from '../testing/claimants.ts';
import { rome } from '../testing/lies.ts';
import { createPeerTrust } from './peer-trust.ts';

const signal = new AbortController().signal;
function world(firstKey: readonly TrustMode[], autoAccept = true) {
  const cluster = new RememberingCluster();
  const isthmus = (kind: string, name: string, spec: object) =>
    cluster.put({ apiVersion: 'isthmus.dev/v1alpha1', kind, metadata: { name }, spec } as KubeObject);
  const side = { enabled: true, autoAccept, peers: ['*'], maxResourcesPerPeer: {}, classes: ['default'] };
  const policy = (accepts: boolean) =>
    isthmus('PeeringPolicy', 'default', {
      tenants: ['*'],
      asConsumer: { ...side, autoAccept: accepts },
      asProvider: side,
      trust: { firstKey },
    });
  policy(autoAccept);
  const { caches, api } = cluster.cluster;
  const trust = createPeerTrust({
    cluster: cluster.cluster,
    clusterId: 'rome',
    tenant: 'acme',
    privateKey: rome.privateKey,
    clock: systemClock,
    log: silentLog,
    facts: () =>
      ({ apiServerUrl: 'https://192.0.2.99:6443', apiServerCa: 'CA', policies: [] }) as unknown as ClusterFacts,
  });
  const sets = createDesiredState({
    cluster: cluster.cluster,
    caches: brokerCaches(caches),
    policies: caches.cache(peeringPolicies) as Cache<never>,
    trust,
    clusterId: 'rome',
    tenant: 'acme',
    log: silentLog,
    onProgress: () => undefined,
  });
  let revision = 0;
  return {
    policy,
    lock: (...keys: KeyObject[]) => isthmus('PeeringLock', 'acme', { keys: keys.map((key) => ({ key: derOf(key) })) }),
    async tell(...told: Omit<DesiredSet, 'revision'>[]): Promise<void> {
      revision += 1;
      const all = told.map((set) => ({ ...set, revision }));
      sets.accept({ revision, full: false, sets: all, answers: [] });
      // A pass for each stage of a peering's end, and those that make it again.
      for (let pass = 0; pass < 12; pass += 1) for (const { peering } of all) await sets.reconcile(peering, signal);
    },
    agree: async (spec: TrustedPeer['spec']) => {
      const known = (await api.get(trustedPeers, { name: 'milan' }, signal)) as TrustedPeer | undefined;
      cluster.put(
        { apiVersion: 'isthmus.dev/v1alpha1', kind: 'TrustedPeer', metadata: { name: 'milan' }, spec } as KubeObject,
        known?.status as Record<string, unknown> | undefined,
      );
    },
    peer: async () => (await api.get(trustedPeers, { name: 'milan' }, signal)) as TrustedPeer,
    /** Whose words are in this cluster: the second number of the pod ranges of every Configuration. */
    applied: () =>
      cluster.objects
        .filter(({ kind }) => kind === 'Configuration')
        .map((object) => /10\.(\d+)\./.exec(JSON.stringify(object))?.[1]),
    names: () => cluster.names.filter((name) => name.includes('milan') && !name.startsWith('TrustedPeer')),
    refusal: () => sets.observed().flatMap(({ refusals }) => refusals)[0],
  };
}
const asConsumer = ({ status }: TrustedPeer) => status?.conditions?.find(({ type }) => type === 'AsConsumer');

describe('a key that was trusted on first use', () => {
  const [wrong, right] = [claimant(1), claimant(2)];

  test('and is not the one that an administrator names loses all that was applied under it, and the status names it', async () => {
    const rome = world(['FirstUse']);
    await rome.tell(presented(wrong, 'pe_1'), presented(wrong, 'pe_2', { role: 'provider' }));
    expect(rome.applied()).toEqual(['1']);
    await rome.agree({ fingerprint: right.fingerprint });
    await rome.tell(presented(wrong, 'pe_1'), presented(wrong, 'pe_2', { role: 'provider' }));
    expect(rome.names()).toEqual([]);
    const { status } = await rome.peer();
    expect(status).toMatchObject({ revoked: [wrong.fingerprint] });
    expect(status).not.toHaveProperty('key');
    expect(asConsumer(await rome.peer())).toMatchObject({ status: 'False', reason: 'PeerKeyRefused' });
    expect(rome.refusal()).toMatchObject({ code: 'peer_key_refused' });
  });

  test('is taken back also where the broker passes on nothing any more', async () => {
    const rome = world(['FirstUse']);
    await rome.tell(presented(wrong, 'pe_1'));
    await rome.agree({ fingerprint: right.fingerprint });
    await rome.tell(presented(wrong, 'pe_1', { silent: true }));
    expect(rome.names()).toEqual([]);
  });

  test('is taken back also where the broker names the same objects as those of another peer', async () => {
    const rome = world(['FirstUse']);
    await rome.tell(presented(wrong, 'pe_1'));
    await rome.tell({ ...presented(wrong, 'pe_9'), peer: 'turin' });
    await rome.agree({ fingerprint: right.fingerprint });
    await rome.tell(presented(wrong, 'pe_1'));
    expect(rome.names()).toEqual([]);
  });

  test('gives way to the one that an administrator names: first all is taken back, then the words of the right one hold', async () => {
    const rome = world(['FirstUse']);
    await rome.tell(presented(wrong, 'pe_1'));
    await rome.agree({ fingerprint: right.fingerprint });
    await rome.tell(presented(right, 'pe_1'));
    expect(rome.applied()).toEqual(['2']);
    expect((await rome.peer()).status).toMatchObject({ trustedBy: 'Object', fingerprint: right.fingerprint });
  });

  test('gives way to one that a lock key signed, and never comes back, also where the broker presents it again', async () => {
    const rome = world(['Lock', 'FirstUse']);
    await rome.tell(presented(wrong, 'pe_1'));
    rome.lock(admin);
    await rome.tell(presented(right, 'pe_1', { lockedAt: 5 }));
    expect(rome.applied()).toEqual(['2']);
    expect((await rome.peer()).status).toMatchObject({
      trustedBy: 'Lock',
      fingerprint: right.fingerprint,
      revoked: [wrong.fingerprint],
    });
    await rome.tell(presented(wrong, 'pe_1'));
    expect(rome.applied()).toEqual(['2']);
    expect(rome.refusal()).toMatchObject({ code: 'peer_key_refused' });
  });

  test('stays where a lock key of an administrator that this cluster does not know signed another', async () => {
    const rome = world(['Lock', 'FirstUse']);
    await rome.tell(presented(wrong, 'pe_1'));
    await rome.tell(presented(right, 'pe_1', { lockedAt: 5 }));
    expect(rome.applied()).toEqual(['1']);
    expect((await rome.peer()).status?.fingerprint).toBe(wrong.fingerprint);
  });

  test('has a successor that an administrator names without anything being taken back', async () => {
    const rome = world(['FirstUse']);
    await rome.tell(presented(wrong, 'pe_1'));
    const before = rome.names();
    await rome.agree({ fingerprint: right.fingerprint });
    const succession = Buffer.from(signSuccession(wrong.keys, right.keys)).toString('base64');
    await rome.tell(presented({ ...right, facts: wrong.facts }, 'pe_1', { succession }));
    expect(rome.names()).toEqual(before);
    expect((await rome.peer()).status).not.toHaveProperty('revoked');
  });
});

describe('what the broker was believed about', () => {
  test('is taken back when the peer then shows another key than an administrator names', async () => {
    const rome = world(['Broker']);
    const [wrong, right] = [claimant(1), claimant(2)];
    await rome.tell(presented(wrong, 'pe_1', { silent: true }));
    expect(rome.applied()).toEqual(['1']);
    await rome.agree({ fingerprint: right.fingerprint });
    await rome.tell(presented(wrong, 'pe_1'));
    expect(rome.names()).toEqual([]);
  });
});

describe('a cluster that was removed, and another one that was enrolled under its name', () => {
  const [former, next] = [claimant(1), claimant(2)];

  test('has not the consent that was given to the former, though the same lock key signed both', async () => {
    const rome = world(['Lock'], false);
    rome.lock(admin);
    await rome.agree({ consent: ['consumer'] });
    await rome.tell(presented(former, 'pe_1', { lockedAt: 1 }));
    expect(rome.applied()).toEqual(['1']);
    await rome.tell(presented(next, 'pe_2', { lockedAt: 2 }));
    expect(rome.applied()).toEqual(['1']);
    expect((await rome.peer()).status).toMatchObject({ fingerprint: former.fingerprint, offered: next.fingerprint });
    expect(asConsumer(await rome.peer())?.message).toContain(`"fingerprint":"${next.fingerprint}"`);
    await rome.agree({ consent: ['consumer'], fingerprint: next.fingerprint });
    await rome.tell({ ...presented(former, 'pe_1'), state: 'absent', objects: [] }, presented(next, 'pe_2'));
    expect(rome.applied()).toEqual(['2']);
  });

  test('has it not through another role either that a policy accepts by itself', async () => {
    const rome = world(['Lock'], false);
    rome.lock(admin);
    await rome.agree({ consent: ['consumer'] });
    await rome.tell(presented(former, 'pe_1', { lockedAt: 1 }));
    await rome.tell({ ...presented(former, 'pe_1'), state: 'absent', objects: [] });
    await rome.tell(presented(next, 'pe_2', { lockedAt: 2, role: 'provider' }));
    await rome.tell(presented(next, 'pe_3', { lockedAt: 2 }));
    expect(asConsumer(await rome.peer())).toMatchObject({ status: 'False', reason: 'ConsentMissing' });
    expect(rome.names().join()).not.toContain('Identity');
  });

  test('has it where the former key signed its key', async () => {
    const rome = world(['Lock'], false);
    rome.lock(admin);
    await rome.agree({ consent: ['consumer'] });
    await rome.tell(presented(former, 'pe_1', { lockedAt: 1 }));
    const succession = Buffer.from(signSuccession(former.keys, next.keys)).toString('base64');
    await rome.tell(presented(next, 'pe_1', { succession }));
    expect(rome.applied()).toEqual(['2']);
    expect((await rome.peer()).status).toMatchObject({ consentKey: next.fingerprint, agreed: ['consumer'] });
  });

  test('is refused when it is of another account, also where the broker is believed', async () => {
    const rome = world(['Broker']);
    await rome.tell(presented(former, 'pe_1', { silent: true }));
    expect((await rome.peer()).status).toMatchObject({ tenant: 'acme' });
    await rome.tell(presented(claimant(2, 'globex'), 'pe_2', { silent: true }));
    expect(rome.applied()).toEqual(['1']);
    expect(rome.refusal()).toMatchObject({ code: 'peer_key_refused', message: expect.stringContaining('globex') });
  });

  test('is refused when it is of another account than an administrator names, before any was known', async () => {
    const rome = world(['FirstUse']);
    await rome.agree({ tenant: 'acme', consent: ['consumer'] });
    await rome.tell(presented(claimant(2, 'globex'), 'pe_1'));
    expect(rome.names()).toEqual([]);
    expect(rome.refusal()?.message).toContain('TrustedPeer milan names account acme');
    await rome.tell({ ...presented(claimant(2, 'globex'), 'pe_1'), state: 'absent', objects: [] });
    await rome.tell(presented(former, 'pe_2'));
    expect(rome.applied()).toEqual(['1']);
  });
});
