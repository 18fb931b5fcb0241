/** An order to adopt is carried out once, and what is kept is listed at each moment. */
import { expect, test } from 'vitest';
import { countOf } from '#test/harness/cases.ts';
import { runAdoptions } from './adoptions.ts';
import { Provider } from './provider.ts';

test('a volume that was adopted and whose claim ended again is kept once more, and the next claim of that name is empty', async () => {
  for (let seed = 1; seed <= 6; seed++)
    for (let pause = 0; pause < 8; pause++) {
      const world = new Provider(seed);
      try {
        world.make('data-0');
        await world.rest();
        const [first] = [...world.milan.disks.values()];
        expect(first?.lines.size).toBeGreaterThan(0);
        world.end('data-0', false);
        await world.rest();
        const [record] = world.records();
        expect(record?.status?.phase).toBe('Kept');
        if (record) world.adopt(record);
        await world.rest();
        world.make('data-0');
        // It ends while it is being bound, or when it has its volume.
        for (let turn = 0; turn < pause; turn++) await world.turn(1, seed % 3);
        const got = world.claim('data-0')?.metadata.uid;
        const hadIt = got !== undefined && world.claim('data-0')?.spec?.volumeName === record?.metadata.name;
        world.end('data-0', false);
        await world.rest();
        world.expectSettled();
        const [again] = world.records();
        if (hadIt) {
          expect(again?.spec.adopt).toBeUndefined();
          expect(again?.spec.remoteClaim.uid).toBe(got);
          expect(again?.status?.phase).toBe('Kept');
          world.make('data-0');
          await world.rest();
          expect(world.claim('data-0')?.spec?.volumeName).not.toBe(record?.metadata.name);
          expect(world.records()).toHaveLength(1);
        }
        expect(world.faults, `seed ${seed}, ${pause} turns`).toEqual([]);
      } finally {
        world.agents.end();
      }
    }
});

test('a claim that its consumer discards before it was ever used leaves the adopted data alone, and the order to the next claim', async () => {
  const world = new Provider(1);
  try {
    world.make('data-0');
    await world.rest();
    const [disk] = [...world.milan.disks.values()];
    world.end('data-0', false);
    await world.rest();
    const [record] = world.records();
    if (record) world.adopt(record);
    await world.rest();
    world.make('data-0', false);
    await world.rest();
    expect(world.holderOf(disk && world.volumeOf(disk))?.metadata.name).toBe('data-0');
    world.end('data-0', true);
    await world.rest();
    expect([...world.milan.disks.values()]).toEqual([disk]);
    expect(world.records()[0]?.status?.phase).toBe('Adopting');
    world.make('data-0');
    await world.rest();
    expect(world.claim('data-0')?.spec?.volumeName).toBe(record?.metadata.name);
    expect(world.records()).toEqual([]);
    expect(world.faults).toEqual([]);
  } finally {
    world.agents.end();
  }
});

test.each([false, true])(
  'a claim that is published only while it ends never had a pod: its order goes on unless the agent has heard of that (%s)',
  async (hasHeard) => {
    const world = new Provider(1);
    try {
      world.make('data-0');
      await world.rest();
      world.end('data-0', false);
      await world.rest();
      const [record] = world.records();
      if (record) world.adopt(record);
      await world.rest();
      world.make('data-0', false);
      await world.rest();
      if (hasHeard) world.agents.kill('milan');
      else
        world.agents.fate = (_, write) => {
          if (write === 'PersistentVolume mergePatch') world.publish('data-0');
          return 'lives';
        };
      world.end('data-0', false);
      if (hasHeard) world.publish('data-0');
      await world.rest();
      world.expectSettled();
      expect(world.records()).toMatchObject([{ status: { phase: hasHeard ? 'Kept' : 'Adopting' } }]);
      world.make('data-0');
      await world.rest();
      expect(world.claim('data-0')?.spec?.volumeName === record?.metadata.name).toBe(!hasHeard);
      expect(world.faults).toEqual([]);
    } finally {
      world.agents.end();
    }
  },
);

test('an order that is taken back reserves nothing', async () => {
  const world = new Provider(1);
  try {
    world.make('data-0');
    await world.rest();
    world.end('data-0', false);
    await world.rest();
    const [record] = world.records();
    if (record) world.adopt(record);
    await world.rest();
    if (record) world.takeBack(record);
    await world.rest();
    world.expectSettled();
    world.make('data-0');
    await world.rest();
    expect(world.claim('data-0')?.spec?.volumeName).not.toBe(record?.metadata.name);
    expect(world.records()[0]?.status?.phase).toBe('Kept');
    expect(world.faults).toEqual([]);
  } finally {
    world.agents.end();
  }
});

/** `adopted`: how often a claim got the data of another one, in all of them. */
async function drawn(count: number, isRestless: boolean, isCrowded: boolean) {
  const found: unknown[] = [];
  let adopted = 0;
  for (let seed = 1; seed <= count; seed++) {
    const history = await runAdoptions(seed, isRestless, isCrowded);
    adopted += history.adopted;
    if (history.faults.length > 0) found.push({ seed, faults: history.faults, steps: history.steps.join(', ') });
  }
  return { found, adopted };
}

const histories = countOf(5_000, 150);

test.each([false, true])(
  `in ${histories} drawn histories no claim gets a volume without an order, no data goes without one, and all that is kept is listed (orders taken back, and all goes on between reads and writes: %s)`,
  async (isRestless) => {
    const { found, adopted } = await drawn(histories, isRestless, false);
    expect(found).toEqual([]);
    expect(adopted).toBeGreaterThan(histories / (isRestless ? 10 : 5));
  },
  1_800_000,
);

const crowded = countOf(1_500, 50);

test.each([false, true])(
  `so it is in ${crowded} drawn histories in which several volumes are ordered for one claim (orders taken back, and all goes on between reads and writes: %s)`,
  async (isRestless) => {
    const { found, adopted } = await drawn(crowded, isRestless, true);
    expect(found).toEqual([]);
    expect(adopted).toBeGreaterThan(crowded / 2);
  },
  1_800_000,
);
