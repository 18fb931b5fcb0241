/** Claims grow at a provider as they would at home: what is said there is said here, and ends when it ends there. */
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import type { PersistentVolume, PersistentVolumeClaim } from '#shared/domain/core-kinds.ts';
import { amountOf } from '../model/claims.ts';
import { type Action, decide, type Observed, type RealClaim } from './decide.ts';

type Status = NonNullable<PersistentVolumeClaim['status']>;
const said = (type: string, message = '', status = 'True') => ({ type, status, message, lastTransitionTime: 'then' });
const pending = said('FileSystemResizePending', 'waits for a pod');
const gi = (size: number): { readonly storage: string } => ({ storage: `${size}Gi` });

const volume = (size = 1): PersistentVolume =>
  ({
    metadata: {
      name: 'pvc-u',
      annotations: { 'isthmus.dev/real-volume': 'real', 'isthmus.dev/real-storage-class': 'fast' },
      finalizers: ['external-provisioner.volume.kubernetes.io/finalizer'],
    },
    spec: {
      persistentVolumeReclaimPolicy: 'Delete',
      capacity: gi(size),
      csi: { driver: 'storage.isthmus.dev', volumeHandle: 'prov/r/data' },
    },
    status: { phase: 'Bound' },
  }) as unknown as PersistentVolume;
const claim = (namespace: string, asks: number, status: object = {}): PersistentVolumeClaim =>
  ({
    metadata: { namespace, name: 'data', uid: 'u', annotations: { 'isthmus.dev/reclaim-policy': 'Delete' } },
    spec: { storageClassName: 'fast', volumeName: 'real', resources: { requests: gi(asks) } },
    status: { phase: 'Bound', capacity: gi(1), ...status },
  }) as unknown as PersistentVolumeClaim;
const home = (asks: number, status: object = {}) => claim('shop', asks, status);
const real = (asks: number, status: object = {}): RealClaim => ({ kind: 'there', object: claim('r', asks, status) });
const look = (more: Partial<Observed>): readonly Action[] =>
  decide({
    volume: volume(),
    home: home(2),
    real: real(2),
    reachable: true,
    isLiqoctlMoving: false,
    nowMs: 0,
    ...more,
  });
const patchOf = (actions: readonly Action[]): Status | undefined =>
  actions.flatMap((action) => (action.do === 'status' ? [action.patch as Status] : []))[0];

const [controller, due, works] = ['ControllerResizeInProgress', 'NodeResizePending', 'NodeResizeInProgress'];
const allocated = (size: number, turn?: string) => ({
  allocatedResources: gi(size),
  ...(turn && { allocatedResourceStatuses: { storage: turn } }),
});
const grownThere = real(2, { ...allocated(2, due), conditions: [pending] });

describe('a claim whose volume at a provider has grown, and whose file system waits for a pod', () => {
  test('says so in the words of the claim there, and the volume here has its size', () => {
    const actions = look({ real: grownThere });
    expect(actions.map((action) => action.do)).toEqual(['status', 'capacity']);
    expect(patchOf(actions)).toMatchObject({
      ...allocated(2, due),
      conditions: [
        {
          type: 'FileSystemResizePending',
          status: 'True',
          reason: 'SaidByRealClaim',
          message: 'claim r/data at cluster prov: waits for a pod',
        },
      ],
    });
    expect(patchOf(actions)?.capacity).toBeUndefined();
    expect(actions.at(-1)).toEqual({ do: 'capacity', storage: '2Gi' });
  });

  test('says it once, and nothing more when the kubelet there has done its part', () => {
    const first = patchOf(look({ real: grownThere }));
    const told = home(2, first);
    expect(look({ volume: volume(2), home: told, real: grownThere })).toEqual([]);
    const done = real(2, { ...allocated(2), capacity: gi(2), conditions: [] });
    const [last, ...more] = look({ volume: volume(2), home: told, real: done });
    expect(more).toEqual([]);
    expect(last).toEqual({
      do: 'status',
      patch: { capacity: gi(2), conditions: [], allocatedResourceStatuses: { storage: null } },
    });
    const healthy = home(2, { ...allocated(2), capacity: gi(2), conditions: [] });
    expect(look({ volume: volume(2), home: healthy, real: done })).toEqual([]);
  });

  test('says what was allocated also when all of it passed while no agent ran', () => {
    const done = real(2, { ...allocated(2), capacity: gi(2) });
    expect(patchOf(look({ volume: volume(2), real: done }))).toEqual({
      ...allocated(2),
      capacity: gi(2),
      allocatedResourceStatuses: { storage: null },
    });
  });
});

describe('what a claim says of its growth at a provider', () => {
  const conditionsOf = (more: Partial<Observed>) =>
    patchOf(look(more))?.conditions?.map(({ type, reason }) => `${type} ${reason}`);
  const failed = { ...said('ControllerResizeError', 'no room'), reason: 'OutOfRange' };
  test.each([
    { when: 'nothing was asked there', there: real(1), says: ['Resizing WaitingForRealClaim'] },
    { when: 'its resizer has not begun', there: real(2), says: ['Resizing WaitingForRealClaim'] },
    {
      when: 'its resizer works',
      there: real(2, { conditions: [said('Resizing')] }),
      says: ['Resizing SaidByRealClaim'],
    },
    { when: 'its resizer fails', there: real(2, { conditions: [failed] }), says: ['ControllerResizeError OutOfRange'] },
    {
      when: 'its kubelet fails',
      there: real(2, { conditions: [pending, said('NodeResizeError')] }),
      says: ['FileSystemResizePending SaidByRealClaim', 'NodeResizeError SaidByRealClaim'],
    },
    {
      when: 'it was asked for still more',
      there: real(1, { conditions: [said('Resizing')] }),
      says: ['Resizing WaitingForRealClaim'],
    },
    {
      when: 'what is said there is no more so, or not about growth',
      there: real(2, { conditions: [said('Resizing', '', 'False'), said('ModifyingVolume')] }),
      says: ['Resizing WaitingForRealClaim'],
    },
  ])('when $when: $says', ({ there, says }) => expect(conditionsOf({ real: there })).toEqual(says));

  test('stands while nothing is known of the claim there, and ends with that claim', () => {
    const told = home(2, { ...allocated(2, due), conditions: [pending] });
    expect(look({ home: told, real: { kind: 'unknown', why: 'x' } })).toEqual([]);
    const lost = patchOf(look({ home: told, real: { kind: 'gone', why: 'x' } }));
    expect(lost?.conditions?.map(({ type }) => type)).toEqual(['isthmus.dev/RemoteBound']);
    expect(lost?.allocatedResourceStatuses).toEqual({ storage: null });
  });

  test('is told of a resizer that says nothing in these fields, as those before Kubernetes 1.32', () => {
    const there = real(2, { conditions: [pending] });
    const actions = look({ real: there });
    expect(actions.map((action) => action.do)).toEqual(['status']);
    expect(patchOf(actions)?.conditions).toMatchObject([{ type: 'FileSystemResizePending' }]);
    const done = look({ home: home(2, patchOf(actions)), real: real(2, { capacity: gi(2) }) });
    expect(done.at(-1)).toEqual({ do: 'capacity', storage: '2Gi' });
  });

  test('is bounded, for every lie of a provider', () => {
    const lies = [
      { ...allocated(1_000_000, due), conditions: [said('Resizing', 'x'.repeat(100_000))] },
      { ...allocated(1_000_000, 'Mine'), conditions: [said('Ready', 'x'), pending, pending] },
    ];
    for (const lie of lies) {
      const patch = patchOf(look({ real: real(2, lie) }));
      expect(patch?.allocatedResources).toEqual(gi(2));
      expect(['NodeResizePending', undefined, null]).toContain(patch?.allocatedResourceStatuses?.storage);
      expect(patch?.conditions).toHaveLength(1);
      expect(patch?.conditions?.[0]?.message?.length).toBeLessThanOrEqual(1_000);
    }
    // What was asked for before still counts while the claim there has it.
    const less = look({ home: home(2, allocated(3, controller)), real: real(2, allocated(3, controller)) });
    expect(patchOf(less)?.allocatedResources).toBeUndefined();
  });
});

describe('a claim that asks for less than before', () => {
  const infeasible = { ...allocated(9, 'ControllerResizeInfeasible'), conditions: [said('ControllerResizeError')] };
  test('asks for less at the provider, too, when the growth there has not come to its end', () => {
    const told = home(2, { ...allocated(9, 'ControllerResizeInfeasible') });
    expect(look({ home: told, real: real(9, infeasible) }).at(-1)).toMatchObject({ do: 'grow', storage: '2Gi' });
    expect(look({ home: told, real: real(9, allocated(9, controller)) }).at(-1)).toMatchObject({ do: 'grow' });
  });

  test('is told no more of a growth beyond it that fails there, once the claim there has what it asks for', () => {
    const told = home(9, { ...infeasible, capacity: gi(9), allocatedResources: { storage: '10Gi' } });
    const beyond = { ...allocated(10, 'ControllerResizeInfeasible'), conditions: [said('ControllerResizeError')] };
    const patch = patchOf(look({ home: told, volume: volume(9), real: real(10, { ...beyond, capacity: gi(9) }) }));
    expect(patch?.conditions?.map(({ type }) => type)).toEqual([]);
    expect(patch?.allocatedResourceStatuses).toEqual({ storage: null });
  });

  test('has what it asks for when the volume there is larger already', () => {
    const done = { ...allocated(9), capacity: gi(9) };
    expect(look({ volume: volume(9), real: real(9, done) }).map((action) => action.do)).toEqual(['status']);
    expect(look({ real: real(9, allocated(9, due)) }).map((action) => action.do)).toEqual(['status', 'capacity']);
    expect(look({ home: home(1), real: real(9, infeasible) }).map((action) => action.do)).toEqual(['status']);
  });
});

/** One cluster here and one there, and an agent between them whose passes may end after any write, and whose reads may be old. */
class World {
  home = home(1);
  volume = volume();
  real = claim('r', 1);
  there = 1;
  seen = this.real;
  /** The largest size that its storage has. */
  readonly most: number;
  constructor(most: number) {
    this.most = most;
  }

  agent(writes: number, isFresh: boolean): number {
    if (isFresh) this.seen = this.real;
    const observed = {
      real: { kind: 'there', object: this.seen } as const,
      reachable: true,
      isLiqoctlMoving: false,
      nowMs: 0,
    };
    const actions = decide({ ...observed, home: this.home, volume: this.volume });
    for (const action of actions.slice(0, writes)) this.#carryOut(action);
    return actions.length;
  }
  #carryOut(action: Action): void {
    if (action.do === 'status') this.home = withStatus(this.home, action.patch);
    else if (action.do === 'capacity')
      this.volume = volume(Number(amountOf({ storage: action.storage }) / amountOf(gi(1))));
    else if (action.do === 'grow') {
      const [asks, has] = [sizeOf(action), Number(amountOf(this.real.status?.capacity) / amountOf(gi(1)))];
      if (asks >= this.#asked || asks > has) this.real = { ...this.real, spec: claim('r', asks).spec ?? {} };
    } else throw new Error(`no step of a growth: ${action.do}`);
  }
  get #asked(): number {
    return sizeOf({ storage: this.real.spec?.resources?.requests?.storage ?? '' });
  }
  ask(size: number): void {
    const has = sizeOf({ storage: this.home.status?.capacity?.storage ?? '' });
    const asked = sizeOf({ storage: this.home.spec?.resources?.requests?.storage ?? '' });
    if (size > asked || (size < asked && size > has)) this.home = { ...this.home, spec: home(size).spec ?? {} };
  }
  /** As external-resizer works. */
  resizer(): void {
    const has = sizeOf({ storage: this.real.status?.capacity?.storage ?? '' });
    const turn = this.real.status?.allocatedResourceStatuses?.storage;
    if (this.#asked <= has || turn === works) return;
    if (this.#asked > this.most)
      this.real = withStatus(this.real, { ...infeasibleOf(this.#asked), conditions: [said('ControllerResizeError')] });
    else if (this.there >= this.#asked && turn !== due)
      this.real = withStatus(this.real, { ...allocated(this.there, due), conditions: [pending] });
    else if (this.there >= this.#asked) return;
    else if (turn === controller) this.there = this.#asked;
    else this.real = withStatus(this.real, { ...allocated(this.#asked, controller), conditions: [said('Resizing')] });
  }
  kubelet(): void {
    const turn = this.real.status?.allocatedResourceStatuses?.storage;
    if (turn === due) this.real = withStatus(this.real, { allocatedResourceStatuses: { storage: works } });
    else if (turn === works)
      this.real = withStatus(this.real, {
        capacity: gi(this.there),
        allocatedResourceStatuses: { storage: null },
        conditions: [],
      });
  }
}
const infeasibleOf = (size: number) => allocated(size, 'ControllerResizeInfeasible');
const sizeOf = (resources: { readonly storage: string }): number => Number(amountOf(resources) / amountOf(gi(1)));
const withStatus = (object: PersistentVolumeClaim, patch: object): PersistentVolumeClaim => {
  const status = { ...object.status, ...patch } as Status & { allocatedResourceStatuses?: Record<string, unknown> };
  if (status.allocatedResourceStatuses?.storage === null) delete status.allocatedResourceStatuses;
  return { ...object, status };
};

/** A request for more than the provider has, made while the growth before it ends there; then the user backs out. */
const askedForTooMuchMeanwhile = [
  { act: 'ask' as const, size: 9 },
  { act: 'agent' as const, writes: 2, isFresh: false },
  { act: 'resizer' as const },
  { act: 'ask' as const, size: 10 },
  { act: 'resizer' as const },
  { act: 'resizer' as const },
  { act: 'kubelet' as const },
];

test('in whichever order agent, resizer, kubelet and user act, and after whichever write an agent dies, a claim ends with what it asked for and awaits nothing', () => {
  const step = fc.oneof(
    fc.record({ act: fc.constant('agent' as const), writes: fc.nat(2), isFresh: fc.boolean() }),
    fc.record({ act: fc.constantFrom('resizer' as const, 'kubelet' as const) }),
    fc.record({ act: fc.constant('ask' as const), size: fc.integer({ min: 1, max: 12 }) }),
  );
  fc.assert(
    fc.property(fc.array(step, { maxLength: 40 }), (steps) => {
      const world = new World(9);
      for (const one of steps) {
        if (one.act === 'agent') world.agent(one.writes, one.isFresh);
        else if (one.act === 'ask') world.ask(one.size);
        else world[one.act]();
        expect(sizeOf({ storage: world.volume.spec?.capacity?.storage ?? '' })).toBeLessThanOrEqual(world.there);
        expect(amountOf(world.home.status?.capacity)).toBeLessThanOrEqual(amountOf(world.real.status?.capacity));
        expect(amountOf(world.home.status?.capacity)).toBeLessThanOrEqual(amountOf(world.volume.spec?.capacity));
      }
      const asked = (): number => sizeOf({ storage: world.home.spec?.resources?.requests?.storage ?? '' });
      // A user backs out of what the provider cannot do, with what it can.
      for (let i = 0; i < 30; i++) {
        world.agent(9, true);
        world.resizer();
        if (asked() > world.most && i === 10) {
          const types = world.home.status?.conditions?.map(({ type }) => type);
          expect(types).toEqual(['ControllerResizeError']);
          world.ask(world.most);
        }
        world.kubelet();
      }
      expect(world.agent(9, true)).toBe(0);
      const { capacity, conditions = [], allocatedResources, allocatedResourceStatuses } = world.home.status ?? {};
      expect(sizeOf({ storage: capacity?.storage ?? '' })).toBeGreaterThanOrEqual(asked());
      expect(conditions).toEqual([]);
      expect(allocatedResourceStatuses).toBeUndefined();
      if (asked() > 1) expect(amountOf(allocatedResources)).toBeGreaterThanOrEqual(amountOf(gi(asked())));
    }),
    { examples: [[askedForTooMuchMeanwhile]] },
  );
});
