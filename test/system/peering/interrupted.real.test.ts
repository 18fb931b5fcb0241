/** Agents that are stopped at any moment of peering and unpeering reach the same end as agents that are not. */
import fc from 'fast-check';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { certificateSigningRequests } from '#shared/domain/core-kinds.ts';
import { annotation, label } from '#shared/domain/liqo-keys.ts';
import { foreignClusters } from '#shared/schema/liqo/foreign-cluster.ts';
import { identities } from '#shared/schema/liqo/identity.ts';
import { quotas } from '#shared/schema/liqo/quota.ts';
import { renews } from '#shared/schema/liqo/renew.ts';
import { resourceSlices } from '#shared/schema/liqo/resource-slice.ts';
import { virtualNodes } from '#shared/schema/liqo/virtual-node.ts';
import { eventually } from '#test/harness/eventually.ts';
import { leftovers, peer, removePeering, unpeerConsumer } from './broker-part.ts';
import { type Pair, startPair, type TestCluster } from './clusters.ts';

let pair: Pair;
beforeAll(async () => {
  pair = await startPair();
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
    { numRuns: 12, endOnFailure: true },
  );
});

test('a consumer whose provider is declared dead ends without it, and the provider cleans when it is told', async () => {
  await peer(pair);
  await pair.provider.server.kill();
  const dead = { metadata: { annotations: { [annotation.permanentlyUnreachable]: 'true' } } };
  await pair.consumer.api.mergePatch(foreignClusters, { name: 'milan' }, dead);
  const startedAt = Date.now();
  await unpeerConsumer(pair);
  expect(Date.now() - startedAt).toBeLessThan(20_000);
  await eventually('nothing left at the consumer', async () => {
    expect(await leftovers(pair.consumer.api)).toEqual([]);
    return true;
  });
  await pair.provider.server.start();
  await removePeering(pair);
  await eventually(
    'nothing left at the provider',
    async () => {
      expect((await leftovers(pair.provider.api)).filter((one) => !one.startsWith('Namespace '))).toEqual([]);
      return true;
    },
    { withinMs: 60_000 },
  );
});
