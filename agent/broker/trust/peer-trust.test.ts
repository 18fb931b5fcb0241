/** The memory of peers: two roles of one pair that are decided at once, by caches that are behind. */
import { describe, expect, test } from 'vitest';
import type { Cache, Cluster } from '#kube/model/types.ts';
import type { KubeObject } from '#shared/domain/kube-object.ts';
import { silentLog } from '#shared/ports/log.ts';
import { systemClock } from '#shared/ports/system-clock.ts';
import { type TrustedPeer, trustedPeers } from '#shared/schema/isthmus/trusted-peer.ts';
import type { ClusterFacts, DesiredSet } from '#shared/schema/protocol/agent-protocol.ts';
import { RememberingCluster } from '#test/harness/remembering-cluster.ts';
import { rome, truth } from '../testing/lies.ts';
import { createPeerTrust } from './peer-trust.ts';

const signal = new AbortController().signal;

/** Reads of the API server are true; what its caches list stays empty. */
function blindTrust() {
  const world = new RememberingCluster();
  const empty = (type: unknown) => ({ type, list: () => [], get: () => undefined }) as unknown as Cache<KubeObject>;
  const cluster = { api: world.cluster.api, caches: { cache: empty } } as unknown as Cluster;
  const trust = createPeerTrust({
    cluster,
    clusterId: 'rome',
    tenant: 'acme',
    privateKey: rome.privateKey,
    clock: systemClock,
    log: silentLog,
    facts: () => ({}) as ClusterFacts,
  });
  const check = (set: Pick<DesiredSet, 'role'>, version?: number) =>
    trust.check(
      { ...truth('pe_1', version), ...set, objects: [], revision: 1 },
      { modes: ['FirstUse'], accepts: true, configuration: undefined },
      signal,
    );
  const peer = () => world.cluster.api.get(trustedPeers, { name: 'milan' }, signal) as Promise<TrustedPeer | undefined>;
  return { check, peer };
}

describe('two peerings of a pair that arrive together', () => {
  test('are both remembered as agreed to', async () => {
    const { check, peer } = blindTrust();
    await Promise.all([check({ role: 'consumer' }), check({ role: 'provider' })]);
    const status = (await peer())?.status;
    expect(status?.agreed).toEqual(['consumer', 'provider']);
    expect(status?.conditions?.map(({ type }) => type)).toEqual(['AsConsumer', 'AsProvider']);
  });

  test('cannot bring back, by the one, what the other has made old', async () => {
    const { check, peer } = blindTrust();
    const [newer, older] = await Promise.all([check({ role: 'consumer' }, 2), check({ role: 'provider' }, 1)]);
    expect([newer?.code, older?.code]).toEqual([undefined, 'peer_unproven']);
    expect((await peer())?.status?.announcedAt).toBe(3);
  });
});
