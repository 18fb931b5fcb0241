/** Orders to adopt when claims end while Kubernetes binds them, and when two volumes are ordered for one claim. */
import { expect, test } from 'vitest';
import { Provider } from './provider.ts';

/** A claim that had a volume has ended; the order to adopt it is for `to`, and the claim that it is for has its name on the volume and no more. */
async function halfBound(to: { namespace: string; claim: string } | undefined, isAwaited: boolean) {
  const world = new Provider(1);
  world.make('data-0');
  await world.rest();
  world.end('data-0', false);
  await world.rest();
  const [record] = world.records();
  if (record === undefined) throw new Error('nothing is kept');
  world.adopt(record, to);
  if (isAwaited) await world.rest();
  if (to) world.makeRescue(record.metadata.name, to.claim);
  else world.make('data-0');
  const volume = () => world.milan.volume(record.metadata.name);
  for (let i = 0; i < 20 && world.holderOf(volume()) === undefined; i++) await world.turn(1, 200);
  expect(world.holderOf(volume())?.metadata.name).toBe(to?.claim ?? 'data-0');
  expect(volume()?.status?.phase).toBe(isAwaited ? 'Available' : 'Released');
  return { world, record };
}

// Seeds 624 and 1136 of the histories, shrunk. Where the volume was still Released, no event tells of the end.
test.each([false, true])(
  "an order for an administrator's claim that ends while it is being bound is over, and the record says so (volume Available: %s)",
  async (isAwaited) => {
    const to = { namespace: 'rescue', claim: 'saved' };
    const { world, record } = await halfBound(to, isAwaited);
    try {
      world.end('saved', false, 'rescue');
      await world.rest();
      world.expectSettled();
      expect(world.records()).toMatchObject([{ status: { phase: 'Kept' } }]);
      expect(world.records()[0]?.spec.adopt).toBeUndefined();
      // Another order is carried out.
      world.adopt(record, to);
      await world.rest();
      world.makeRescue(record.metadata.name, 'saved');
      await world.rest();
      expect(world.claim('saved', 'rescue')?.status?.phase).toBe('Bound');
      expect(world.faults).toEqual([]);
    } finally {
      world.agents.end();
    }
  },
);

// Seeds 707, 2054 and 2408 of the histories, shrunk.
test.each([
  [false, false],
  [false, true],
  [true, false],
  [true, true],
])(
  'an order for the claim of a guest that ends while it is being bound is for the next claim of that name (volume Available: %s, ends with its data: %s)',
  async (isAwaited, withData) => {
    const { world, record } = await halfBound(undefined, isAwaited);
    try {
      world.end('data-0', withData);
      await world.rest();
      world.expectSettled();
      expect(world.records()).toMatchObject([
        { spec: { adopt: { namespace: 'shop-rome', claim: 'data-0' } }, status: { phase: 'Adopting' } },
      ]);
      world.make('data-0');
      await world.rest();
      expect(world.claim('data-0')?.spec?.volumeName).toBe(record.metadata.name);
      expect(world.records()).toEqual([]);
      expect(world.faults).toEqual([]);
    } finally {
      world.agents.end();
    }
  },
);

// Seeds 640, 1537 and 3537 of the histories, shrunk.
test('an order that is given while the claim that had the volume is still ending is for the next claim of that name', async () => {
  const world = new Provider(1);
  try {
    world.make('data-0');
    await world.rest();
    world.agents.fate = (_, write) => (write === 'RetainedVolume create' ? 'after' : 'lives');
    world.end('data-0', false);
    for (let i = 0; i < 20 && world.records().length === 0; i++) await world.turn(0, 200);
    const [record] = world.records();
    expect(world.claim('data-0')?.metadata.finalizers).toHaveLength(2);
    if (record) world.adopt(record);
    await world.rest();
    world.expectSettled();
    expect(world.records()).toMatchObject([{ status: { phase: 'Adopting' } }]);
    world.make('data-0');
    await world.rest();
    expect(world.claim('data-0')?.spec?.volumeName).toBe(record?.metadata.name);
    expect(world.records()).toEqual([]);
    expect(world.faults).toEqual([]);
  } finally {
    world.agents.end();
  }
});

/** Kubernetes began to bind the later of two kept volumes to a claim; now the earlier one is reserved for that claim as well, and comes first. */
async function namedTwice() {
  const world = new Provider(1);
  for (let i = 0; i < 2; i++) {
    world.make('data-0');
    await world.rest();
    world.end('data-0', false);
    await world.rest();
  }
  const [first, second] = world.records();
  if (first === undefined || second === undefined) throw new Error('nothing is kept');
  const volume = ({ metadata }: typeof first) => world.milan.volume(metadata.name);
  world.adopt(second);
  await world.rest();
  world.make('data-0');
  for (let i = 0; i < 20 && world.holderOf(volume(second)) === undefined; i++) await world.turn(1, 200);
  world.adopt(first);
  for (let i = 0; i < 20 && volume(first)?.spec?.claimRef?.uid !== undefined; i++) await world.turn(0, 200);
  expect(world.claim('data-0')?.spec?.volumeName).toBeUndefined();
  expect(world.holderOf(volume(second))?.metadata.name).toBe('data-0');
  expect(volume(first)?.spec?.claimRef?.uid).toBeUndefined();
  return { world, first, second };
}

// Seed 2024 of the histories, shrunk.
test('of two volumes that are ordered for one claim it gets one, and the other one stays reserved for the next claim of that name', async () => {
  const { world, first, second } = await namedTwice();
  try {
    await world.rest();
    world.expectSettled();
    expect(world.claim('data-0')?.spec?.volumeName).toBe(first.metadata.name);
    expect(world.records()).toMatchObject([
      { metadata: { name: second.metadata.name }, status: { phase: 'Adopting' } },
    ]);
    world.end('data-0', false);
    await world.rest();
    world.make('data-0');
    await world.rest();
    world.expectSettled();
    expect(world.claim('data-0')?.spec?.volumeName).toBe(second.metadata.name);
    expect(world.records()).toMatchObject([{ metadata: { name: first.metadata.name }, status: { phase: 'Kept' } }]);
    expect(world.faults).toEqual([]);
  } finally {
    world.agents.end();
  }
});

test.each([false, true])(
  'so it does when the claim ends before Kubernetes has taken its name off that one (ends with its data: %s)',
  async (withData) => {
    const { world, first, second } = await namedTwice();
    try {
      const { name } = first.metadata;
      const claimRef = { namespace: 'shop-rome', name: 'data-0', uid: world.claim('data-0')?.metadata.uid };
      world.milan.setSpec(world.milan.volume(name) as never, { claimRef });
      world.milan.setStatus(world.milan.volume(name) as never, { phase: 'Bound' });
      world.milan.setSpec(world.claim('data-0') as never, { volumeName: name });
      world.milan.setStatus(world.claim('data-0') as never, { phase: 'Bound' });
      world.end('data-0', withData);
      const isGuarded = () => world.claim('data-0')?.metadata.finalizers?.includes('isthmus.dev/guest-claim');
      for (let i = 0; i < 20 && isGuarded(); i++) await world.turn(0, 200);
      expect(isGuarded()).toBe(false);
      await world.rest();
      world.expectSettled();
      expect(new Map(world.records().map(({ metadata, status }) => [metadata.name, status?.phase]))).toEqual(
        new Map([...(withData ? [] : [[name, 'Kept'] as const]), [second.metadata.name, 'Adopting']]),
      );
      world.make('data-0');
      await world.rest();
      expect(world.claim('data-0')?.spec?.volumeName).toBe(second.metadata.name);
      expect(world.faults).toEqual([]);
    } finally {
      world.agents.end();
    }
  },
);

// Seed 1364 of the crowded histories, shrunk. Kubernetes had read the claim before it was gone.
test.each([false, true])(
  'an order goes on when the name of a claim comes to the volume after that claim has gone (ends with its data: %s)',
  async (withData) => {
    const world = new Provider(1);
    try {
      world.make('data-0');
      await world.rest();
      world.end('data-0', false);
      await world.rest();
      const [record] = world.records();
      if (record === undefined) throw new Error('nothing is kept');
      world.adopt(record);
      await world.rest();
      const { name } = record.metadata;
      world.make('data-0');
      const claimRef = { namespace: 'shop-rome', name: 'data-0', uid: world.claim('data-0')?.metadata.uid };
      world.end('data-0', withData);
      await world.rest();
      expect(world.claim('data-0')).toBeUndefined();
      world.milan.setSpec(world.milan.volume(name) as never, { claimRef });
      world.milan.setStatus(world.milan.volume(name) as never, { phase: 'Released' });
      await world.rest();
      world.expectSettled();
      expect(world.records()).toMatchObject([{ metadata: { name }, status: { phase: 'Adopting' } }]);
      world.make('data-0');
      await world.rest();
      expect(world.claim('data-0')?.spec?.volumeName).toBe(name);
      expect(world.faults).toEqual([]);
    } finally {
      world.agents.end();
    }
  },
);
