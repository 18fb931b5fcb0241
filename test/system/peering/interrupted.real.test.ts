/** Agents that are stopped at any moment of peering and unpeering reach the same end as agents that are not, and a side without the other comes to its own. */
import fc from 'fast-check';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { isthmus } from '#cli/captured-io.ts';
import { certificateSigningRequests, configMaps } from '#shared/domain/core-kinds.ts';
import { clusterIdConfigMap, isthmusAnnotation, label, systemNamespace } from '#shared/domain/liqo-keys.ts';
import { foreignClusters } from '#shared/schema/liqo/foreign-cluster.ts';
import { identities } from '#shared/schema/liqo/identity.ts';
import { quotas } from '#shared/schema/liqo/quota.ts';
import { renews } from '#shared/schema/liqo/renew.ts';
import { resourceSlices } from '#shared/schema/liqo/resource-slice.ts';
import { virtualNodes } from '#shared/schema/liqo/virtual-node.ts';
import { countOf } from '#test/harness/cases.ts';
import { eventually } from '#test/harness/eventually.ts';
import type { TestApiServer } from '#test/harness/kube-apiserver.ts';
import { leftovers, peer, removePeering } from './broker-part.ts';
import { type Pair, startOwnPair, type TestCluster } from './clusters.ts';

let pair: Pair<TestApiServer>;
beforeAll(async () => {
  pair = await startOwnPair();
  // The signer of a controller-manager that has just started takes seconds for its first certificate.
  await peer(pair);
  await removePeering(pair);
}, 900_000);
afterAll(async () => await pair?.stop());

interface Blow {
  readonly victims: 'consumer' | 'provider' | 'both';
  readonly afterMs: number;
  readonly downMs: number;
}
const blow = fc.record<Blow>({
  victims: fc.constantFrom('consumer', 'provider', 'both'),
  afterMs: fc.integer({ min: 0, max: 400 }),
  downMs: fc.integer({ min: 0, max: 150 }),
});
const pause = (ms: number): Promise<void> => pair.clock.sleep(ms);

async function strike({ victims, afterMs, downMs }: Blow): Promise<void> {
  const hit: TestCluster[] = victims === 'both' ? [pair.consumer, pair.provider] : [pair[victims]];
  await pause(afterMs);
  await Promise.all(hit.map((cluster) => cluster.stopAgent()));
  await pause(downMs);
  await Promise.all(hit.map((cluster) => cluster.startAgent()));
}

/** The end state, without what differs by nature (uids, times, certificates). */
async function endState(): Promise<unknown> {
  const { consumer, provider } = pair;
  const [slice] = await consumer.api.list(resourceSlices);
  const [copy] = await provider.api.list(resourceSlices);
  return {
    slice: {
      conditions: slice?.status?.conditions?.map(({ type, status }) => `${type} ${status}`),
      resources: slice?.status?.resources,
      finalizers: slice?.metadata.finalizers,
    },
    copy: {
      labels: copy?.metadata.labels,
      conditions: copy?.status?.conditions?.map(({ type, status }) => `${type} ${status}`),
    },
    nodes: (await consumer.api.list(virtualNodes)).map(({ metadata, spec }) => [metadata.name, spec]),
    identities: (await consumer.api.list(identities)).map(({ metadata, status }) => [
      metadata.name,
      status?.kubeconfigSecretRef,
    ]),
    renews: [(await consumer.api.list(renews)).length, (await provider.api.list(renews)).length],
    quotas: (await provider.api.list(quotas)).map(({ spec }) => spec),
    requests: (await provider.api.list(certificateSigningRequests, { labelSelector: label.remoteTenantCsr })).length,
    clusters: [
      ...(await consumer.api.list(foreignClusters)).map(({ metadata, status }) => [metadata.name, status?.role]),
      ...(await provider.api.list(foreignClusters)).map(({ metadata, status }) => [metadata.name, status?.role]),
    ],
  };
}

test('whenever agents are stopped, the peering ends up the same and its removal leaves nothing', async () => {
  await peer(pair);
  const undisturbed = await eventually('a settled peering', async () => {
    const state = await endState();
    expect(state).toMatchObject({
      renews: [1, 1],
      requests: 0,
      clusters: [
        ['milan', 'Provider'],
        ['rome', 'Consumer'],
      ],
    });
    return state;
  });
  await removePeering(pair);
  await fc.assert(
    fc.asyncProperty(blow, blow, async (whilePeering, whileEnding) => {
      await Promise.all([peer(pair), strike(whilePeering)]);
      await eventually('the same end', async () => {
        expect(await endState()).toEqual(undisturbed);
        return true;
      });
      await Promise.all([removePeering(pair), strike(whileEnding)]);
      await eventually('nothing left but the namespaces', async () => {
        const left = [...(await leftovers(pair.consumer.api)), ...(await leftovers(pair.provider.api))];
        expect(left.filter((one) => !one.startsWith('Namespace '))).toEqual([]);
        return true;
      });
    }),
    { numRuns: countOf(8, 3), endOnFailure: true },
  );
}, 400_000);

const forceAt = (cluster: TestCluster, ...more: string[]) =>
  isthmus(['unpeer', 'rome', 'milan', '--force', '--kubeconfig', cluster.server.kubeconfigPath, ...more], {
    clock: pair.clock,
  });
const isSaid = async (peerId: string, status: string): Promise<boolean> => {
  const foreign = await pair.consumer.api.get(foreignClusters, { name: peerId });
  return foreign?.status?.conditions?.some((one) => one.type === 'APIServerStatus' && one.status === status) === true;
};

test('one side is taken down without the other after two looks that found it gone, and the other when it is back', async () => {
  for (const { api, id } of [pair.consumer, pair.provider])
    await api.create(configMaps, {
      apiVersion: 'v1',
      kind: 'ConfigMap',
      metadata: { name: clusterIdConfigMap, namespace: systemNamespace },
      data: { CLUSTER_ID: id },
    });
  await peer(pair);
  const { metadata } = (await pair.consumer.api.get(foreignClusters, { name: 'milan' })) ?? {};
  expect(metadata?.annotations?.[isthmusAnnotation.owner]).toBe('broker');
  await eventually('the provider to be seen', () => isSaid('milan', 'Established'));
  const early = await forceAt(pair.consumer);
  expect([early.code, early.err]).toEqual([5, expect.stringContaining('milan is not gone: its API server answers')]);
  await pair.provider.server.kill();
  pair.clock.advance(16_000);
  await eventually('the provider to be missed', () => isSaid('milan', 'Error'), { withinMs: 40_000 });
  pair.clock.advance(25_000);
  const forced = await forceAt(pair.consumer);
  expect([forced.code, forced.out]).toEqual([0, 'rome is free of milan\n']);
  expect(forced.err).toContain('milan: liqo-tenant-rome with Tenant rome');
  expect(await leftovers(pair.consumer.api)).toEqual([]);
  await pair.provider.server.start();
  await eventually(
    'the provider to know of its consumer',
    async () => (await pair.provider.api.get(foreignClusters, { name: 'rome' })) !== undefined,
  );
  const unsure = await forceAt(pair.provider);
  expect([unsure.code, unsure.err]).toEqual([2, expect.stringContaining('--yes')]);
  const back = await forceAt(pair.provider, '--yes');
  expect([back.code, back.out]).toEqual([0, 'milan is free of rome\n']);
  expect(await leftovers(pair.provider.api)).toEqual([]);
}, 180_000);
