import fc from 'fast-check';
import { expect, test } from 'vitest';
import { claimName, MovingWorld } from '../testing/moving-world.ts';

const actors = {
  think: (world) => world.think(),
  act: (world) => world.act(),
  crash: (world) => world.crash(),
  statefulSet: (world) => world.statefulSet(),
  blind: (world) => world.blind(),
  bind: (world) => world.bind(),
  place: (world) => world.place(),
  end: (world) => world.end(),
  write: (world) => world.write(),
  copy: (world) => world.copy(false),
  breakOff: (world) => world.copy(true),
  later: (world) => {
    world.nowMs += 20_000;
  },
  abort: (world) => world.order('abort'),
  confirm: (world) => world.order('confirm'),
  undo: (world) => world.order('undo-copy-back'),
  undoWithout: (world) => world.order('undo-discard-new-writes'),
} as const satisfies Record<string, (world: MovingWorld) => void>;
type Actor = keyof typeof actors;

const fair: readonly Actor[] = ['think', 'act', 'statefulSet', 'bind', 'place', 'end', 'write', 'copy'];

const disturbance = fc.oneof(
  { weight: 6, arbitrary: fc.constantFrom<Actor>('blind', 'crash', 'breakOff') },
  { weight: 2, arbitrary: fc.constant<Actor>('later') },
  { weight: 1, arbitrary: fc.constantFrom<Actor>('abort', 'confirm', 'undo', 'undoWithout') },
);
/** Nearly every actor gets its turn in each round, in any order: an agent that acts before it thinks writes what it decided a round ago. */
const anyRound = fc
  .tuple(fc.shuffledSubarray([...fair], { minLength: 5 }), fc.option(disturbance, { freq: 2, nil: undefined }))
  .map(([turns, disturbed]): Actor[] => [...(disturbed ? [disturbed] : []), ...turns]);
const rounds = (maxLength: number) => fc.array(anyRound, { maxLength }).map((all) => all.flat());

const resting = new Set(['Undoable', 'Confirmed', 'Undone', 'Aborted']);

/** Everything gets its turn until the move rests. */
function settle(world: MovingWorld): string {
  for (let turn = 0; turn < 200; turn++) {
    for (const actor of fair) actors[actor](world);
    world.nowMs += 500;
  }
  return world.move?.status?.phase ?? 'gone';
}

function expectInOrder(world: MovingWorld, phase: string): void {
  expect(world.faults).toEqual([]);
  expect([...world.pods.keys()]).toEqual(['app-0']);
  expect(world.pods.get('app-0')?.status?.phase).toBe('Running');
  expect([...world.claims.keys()]).toEqual([claimName]);
  const claim = world.claims.get(claimName);
  expect(claim?.metadata.finalizers ?? []).toEqual([]);
  expect(Object.keys(claim?.metadata.annotations ?? {})).not.toContain('isthmus.dev/volume-move');
  expect([world.keys, world.service]).toEqual([false, false]);
  const kept = phase === 'Undoable' ? [world.move?.status?.from?.volume] : [];
  expect([...world.volumes.keys()].sort()).toEqual([claim?.spec?.volumeName, ...kept].sort());
  for (const { volume } of world.volumes.values())
    expect([volume.metadata.name, volume.spec?.persistentVolumeReclaimPolicy]).toEqual([
      volume.metadata.name,
      volume.metadata.name === claim?.spec?.volumeName ? 'Delete' : 'Retain',
    ]);
}

test('a move that nothing disturbs ends with the claim on the new volume, and the old one kept', () => {
  const world = new MovingWorld();
  expect(settle(world)).toBe('Undoable');
  expectInOrder(world, 'Undoable');
  expect(world.claims.get(claimName)?.spec?.volumeName).toBe(world.move?.status?.to?.volume);
  expect(world.acknowledged.size).toBeGreaterThan(10);
});

test.each([
  ['undo-copy-back', 'Undone'],
  ['undo-discard-new-writes', 'Undone'],
  ['confirm', 'Confirmed'],
] as const)('after %s the move is %s, and one volume is left', (order, phase) => {
  const world = new MovingWorld();
  settle(world);
  const first = world.move?.status?.from?.volume;
  world.order(order);
  expect(settle(world)).toBe(phase);
  expectInOrder(world, phase);
  expect(world.claims.get(claimName)?.spec?.volumeName === first).toBe(order !== 'confirm');
});

test('the volume that was left goes when the undo window is over', () => {
  const world = new MovingWorld();
  settle(world);
  world.nowMs += 3_600_000;
  expect(settle(world)).toBe('Confirmed');
  expectInOrder(world, 'Confirmed');
});

test('a mover that fails three times ends the move, and the pod goes on where it was', () => {
  const world = new MovingWorld();
  for (let turn = 0; turn < 400; turn++) {
    for (const actor of fair) actors[actor === 'copy' ? 'breakOff' : actor](world);
  }
  expect(world.move?.status).toMatchObject({ phase: 'Aborted', message: 'it broke off' });
  expectInOrder(world, 'Aborted');
});

test('in every order of ends, failures, late writes and orders, no acknowledged line is lost, and every volume has an owner or a record', () => {
  fc.assert(
    fc.property(rounds(120), (schedule) => {
      const world = new MovingWorld();
      for (const actor of schedule) actors[actor](world);
      const phase = settle(world);
      expect(resting.has(phase)).toBe(true);
      expectInOrder(world, phase);
    }),
    { numRuns: 300 },
  );
});

test('a VolumeMove that is deleted at any moment leaves the claim with one of the two volumes, whole', () => {
  fc.assert(
    fc.property(rounds(80), (schedule) => {
      const world = new MovingWorld();
      for (const actor of schedule) actors[actor](world);
      world.remove();
      expect(settle(world)).toBe('gone');
      expect(world.faults).toEqual([]);
      expect([...world.pods.keys()]).toEqual(['app-0']);
      expect([...world.claims.keys()]).toEqual([claimName]);
      // to delete stays, Retain, as its PersistentVolume says.
      const bound = world.claims.get(claimName)?.spec?.volumeName;
      const left = [...world.volumes.values()].filter(({ volume }) => volume.metadata.name !== bound);
      expect(left.map(({ volume }) => volume.spec?.persistentVolumeReclaimPolicy)).toEqual(left.map(() => 'Retain'));
    }),
    { numRuns: 150 },
  );
});
