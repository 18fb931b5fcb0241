import { describe, expect, test } from 'vitest';
import { adminOf, type BrokerClusters, createBrokerClusters } from '../../testing/broker-clusters.ts';

const admin = adminOf('default');

async function peered() {
  const clusters = createBrokerClusters();
  const rome = await clusters.join('rome');
  const milan = await clusters.join('milan');
  const { peering } = await clusters.control.peerings.request(admin, {
    consumer: 'rome',
    provider: 'milan',
    resources: {},
  });
  const view = () => clusters.control.peerings.get(admin, peering.id);
  await clusters.until(async () => (await view()).phase === 'Ready', 10_000);
  return { world: clusters, rome, milan, id: peering.id, view };
}

/** Until the broker takes the dead for dead. */
async function passes(clusters: BrokerClusters, ms: number): Promise<void> {
  const end = clusters.clock.now() + ms;
  await clusters.until(() => clusters.clock.now() >= end, ms + 1_000);
}

describe('a forced end', () => {
  test('is refused while both clusters are heard of, and changes nothing', async () => {
    const { world: clusters, id, view } = await peered();
    await expect(clusters.control.peerings.unpeer(admin, id, { force: true })).rejects.toMatchObject({
      code: 'peer_alive',
      message: expect.stringMatching(/rome was heard \d+ s ago, milan was heard \d+ s ago/),
    });
    expect((await view()).phase).toBe('Ready');
  });

  test.each(['rome', 'milan'] as const)(
    'passes %s over when it is silent, and says what is left there',
    async (dead) => {
      const { world: clusters, rome, milan, id, view } = await peered();
      const [lost, living] = dead === 'rome' ? [rome, milan] : [milan, rome];
      lost.alive = false;
      lost.apiUp = false;
      await passes(clusters, 200_000);
      const requested = clusters.clock.now();
      await clusters.control.peerings.unpeer(admin, id, { force: true });
      await clusters.until(async () => (await view()).phase === 'Gone', 20_000);
      expect(clusters.clock.now() - requested).toBeLessThan(8_000);
      expect(living.remains).toEqual([]);
      expect((await view()).leftBehind).toEqual([expect.stringMatching(new RegExp(`^${dead}: `))]);
      lost.alive = true;
      lost.apiUp = true;
      await clusters.until(async () => (await view()).leftBehind.length === 0, 60_000);
      expect(lost.remains).toEqual([]);
    },
  );

  test('waits for a side that is heard again before the second look', async () => {
    const { world: clusters, rome, milan, id, view } = await peered();
    milan.alive = false;
    await passes(clusters, 200_000);
    await clusters.control.peerings.unpeer(admin, id, { force: true });
    milan.alive = true;
    await clusters.until(async () => (await view()).phase === 'Gone', 20_000);
    expect((await view()).leftBehind).toEqual([]);
    expect([...rome.remains, ...milan.remains]).toEqual([]);
  });

  test('may come after a plain one', async () => {
    const { world: clusters, milan, id, view } = await peered();
    milan.alive = false;
    milan.apiUp = false;
    await passes(clusters, 200_000);
    await clusters.control.peerings.unpeer(admin, id);
    const requested = clusters.clock.now();
    await clusters.control.peerings.unpeer(admin, id, { force: true });
    await clusters.until(async () => (await view()).phase === 'Gone', 20_000);
    expect(clusters.clock.now() - requested).toBeLessThan(8_000);
  });
});

test.each(['rome', 'milan'] as const)('a peering whose objects are deleted in %s ends on both sides', async (by) => {
  const { world: clusters, rome, milan, view } = await peered();
  (by === 'rome' ? rome : milan).endsByHand = true;
  await clusters.until(async () => (await view()).phase === 'Unpeering', 10_000);
  expect((await view()).conditions).toContainEqual(
    expect.objectContaining({
      type: 'Consented',
      reason: 'EndedInCluster',
      message: expect.stringContaining(`in ${by}`),
    }),
  );
  await clusters.until(async () => (await view()).phase === 'Gone', 20_000);
  expect([...rome.remains, ...milan.remains]).toEqual([]);
});
