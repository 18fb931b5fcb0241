/**
 * One history of claims: applications that write come, grow, move, are moved back, lose their provider and get their data back, while agents die before
 * and after drawn writes. In the end everything heals, and each application runs with all that it was ever told is safe; nothing is left without an owner
 * or a record.
 */
import { storageAnnotation } from '#shared/domain/storage-keys.ts';
import { retainedVolumes } from '#shared/schema/isthmus/retained-volume.ts';
import { randomOf } from '../orderings.ts';
import { describe, leftovers } from './leftovers.ts';
import { type ProviderName, providerNames, shop, shopThere } from './names.ts';
import type { App } from './played.ts';
import { StorageWorld } from './world.ts';

const orders = ['abort', 'confirm', 'undo-copy-back', 'undo-discard-new-writes'] as const;
const sizes = ['2Gi', '3Gi', '4Gi'] as const;
const over: ReadonlySet<string> = new Set(['Refused', 'Confirmed', 'Undone', 'Aborted', 'Undoable']);
/** On the clock of the agents: longer than the longest wait of a move. */
const patienceMs = 40 * 60_000;

export interface History {
  readonly seed: number;
  readonly steps: readonly string[];
  readonly faults: readonly string[];
  /** Writes of agents, as `KIND method`. */
  readonly writes: readonly string[];
  /** How many moves entered each phase. */
  readonly phases: ReadonlyMap<string, number>;
}

const breathe = async (turns: number): Promise<void> => {
  for (let i = 0; i < turns; i++) await new Promise((resolve) => setImmediate(resolve));
};

/** Agents work; caches hear of some of what there is to hear. */
async function pass(world: StorageWorld, most: number): Promise<void> {
  await breathe(2);
  for (let i = 0; i < most; i++) {
    if (!world.clusters.some(({ store }) => store.deliverOne())) break;
    if (i % 4 === 3) await breathe(1);
  }
  await breathe(2);
}

/** Everything gets its turn until this holds, or for as long as a user would wait. */
export async function until(world: StorageWorld, holds: () => boolean, forMs = patienceMs): Promise<boolean> {
  const endMs = world.clock.now() + forMs;
  let stepMs = 300;
  while (world.clock.now() < endMs) {
    world.agents.start();
    world.play(1);
    await pass(world, 400);
    if (holds() || world.faults.length > 0) return world.faults.length === 0;
    world.clock.advance(stepMs);
    stepMs = Math.min(stepMs * 1.02, 5_000);
  }
  return false;
}

const live = (world: StorageWorld): App[] => [...world.apps.values()];
export const runs = (world: StorageWorld, app: App): boolean => {
  const pod = world.home.pod(shop, app.pod);
  return pod?.status?.phase === 'Running' && pod.metadata.deletionTimestamp === undefined;
};
export const isResting = (world: StorageWorld, app: App): boolean => {
  const move = world.move(app);
  return (
    move === undefined || (over.has(move.status?.phase ?? 'Pending') && move.metadata.deletionTimestamp === undefined)
  );
};
const isLost = (world: StorageWorld, app: App): boolean =>
  world
    .claim(app)
    ?.status?.conditions?.some(({ type, reason }) => type === 'isthmus.dev/RemoteBound' && reason === 'RemoteLost') ??
  false;

interface Step {
  readonly name: string;
  readonly act: () => void;
}

function stepsOf(world: StorageWorld, drawn: <T>(from: readonly T[]) => T): readonly (() => Step | undefined)[] {
  const anyApp = (): App | undefined => {
    const all = live(world);
    return all.length > 0 ? drawn(all) : undefined;
  };
  const ofApp = (name: string, act: (app: App) => void) => (): Step | undefined => {
    const app = anyApp();
    return app && { name: `${name} ${app.name}`, act: () => act(app) };
  };
  const ofProvider = (name: string, act: (provider: ProviderName) => void) => (): Step => {
    const provider = drawn(providerNames);
    return { name: `${name} ${provider}`, act: () => act(provider) };
  };
  const move = (): Step | undefined => {
    const app = anyApp();
    const target = drawn(['local', ...providerNames]);
    return app && { name: `move ${app.name} to ${target}`, act: () => world.startMove(app, target) };
  };
  const order = (): Step | undefined => {
    const app = anyApp();
    const what = drawn(orders);
    return app && { name: `${what} ${app.name}`, act: () => world.order(app, what) };
  };
  return [
    move,
    move,
    move,
    order,
    order,
    () => (world.apps.size < 2 ? { name: 'create b', act: () => world.addApp('b') } : undefined),
    ofApp('resize', (app) => {
      const size = drawn(sizes);
      if (Number.parseInt(size, 10) > Number.parseInt(app.size, 10)) world.resize(app, size);
    }),
    ofApp('delete the VolumeMove of', (app) => world.deleteMove(app)),
    ofApp('retain the volume of', (app) => world.retain(app)),
    ofApp('restart', (app) => world.restart(app)),
    ofApp('delete by force', (app) => world.forceDelete(app)),
    ofProvider('cut', (provider) => cut(world, provider)),
    () => ({
      name: 'pods are forgotten as the next freeze begins',
      act: () => {
        world.onFreeze = (app) => world.forceDelete(app);
      },
    }),
    () => ({
      name: 'and all providers are cut off',
      act: () => {
        world.onFreeze = (app) => {
          for (const provider of providerNames) cut(world, provider);
          world.forceDelete(app);
        };
      },
    }),
    ofProvider('heal', (provider) => heal(world, provider)),
    ofProvider('peer again with', (provider) => world.peer(provider)),
    ofProvider('unpeer', (provider) => {
      // What a peering that ends does to a move that needs it is a case of its own.
      const isInUse = live(world).some((app) => !isResting(world, app));
      if (!isInUse) world.unpeer(provider);
    }),
    () => ({ name: 'a mover breaks off', act: () => world.breakOff() }),
    ofApp('a late admission of', (app) => {
      world.isBlind = true;
      world.restart(app);
    }),
    () => ({ name: 'a while passes', act: () => world.clock.advance(120_000) }),
    () => ({ name: 'the undo windows end', act: () => world.clock.advance(3_600_000) }),
  ];
}

function cut(world: StorageWorld, name: ProviderName): void {
  const provider = world.providers.get(name);
  if (provider) provider.store.isCut = true;
}

/** What the provider has heard meanwhile is heard; watches go on. */
function heal(world: StorageWorld, name: ProviderName): void {
  const provider = world.providers.get(name);
  if (provider) provider.store.isCut = false;
}

export async function runHistory(seed: number): Promise<History> {
  const random = randomOf(seed);
  const drawn = <T>(from: readonly T[]): T => from[Math.floor(random() * from.length)] as T;
  const world = new StorageWorld(random);
  const done: string[] = [];
  let mayDie = true;
  // Half of the histories have agents that die at one of eight writes.
  const mortality = random() < 0.5 ? 0.12 : 0;
  world.agents.fate = (agent) => {
    if (!mayDie || random() >= mortality) return 'lives';
    const fate = random() < 0.5 ? 'before' : 'after';
    done.push(`${agent} dies ${fate} a write`);
    return fate;
  };
  try {
    world.addApp('a');
    await until(world, () => live(world).every((app) => runs(world, app)));
    const steps = stepsOf(world, drawn);
    const many = 6 + Math.floor(random() * 14);
    for (let i = 0; i < many && world.faults.length === 0; i++) {
      const step = drawn(steps)();
      if (step) done.push(step.name);
      step?.act();
      const turns = Math.floor(random() * 30);
      for (let turn = 0; turn < turns; turn++) {
        world.play(0.4 + 0.6 * random());
        await pass(world, Math.floor(random() * 60));
        if (random() < 0.7) world.agents.start();
        world.clock.advance(300);
      }
    }
    mayDie = false;
    world.onFreeze = undefined;
    if (world.faults.length === 0) await conclude(world);
    return { seed, steps: done, faults: world.faults, writes: world.agents.written, phases: world.phases };
  } finally {
    world.agents.end();
  }
}

/** Everything heals, and users do what the documentation says. */
async function conclude(world: StorageWorld): Promise<void> {
  for (const provider of providerNames) heal(world, provider);
  await until(world, () =>
    providerNames.every((name) => {
      world.peer(name);
      return world.isPeered(name);
    }),
  );
  const isDone = (app: App): boolean => runs(world, app) && isResting(world, app);
  const isInOrder = (): boolean => {
    for (const app of live(world)) if (isLost(world, app)) adopt(world, app);
    return live(world).every((app) => isDone(app) && !isLost(world, app)) && leftovers(world).length === 0;
  };
  if (await until(world, isInOrder)) return;
  if (world.faults.length > 0) return;
  for (const app of live(world))
    if (!isDone(app)) world.faults.push(`${app.name} does not come to rest: ${describe(world, app)}`);
  world.faults.push(...leftovers(world));
}

/** docs/storage.md, "How does a claim get kept data back?" */
function adopt(world: StorageWorld, app: App): void {
  const claim = world.claim(app);
  const moved = world.home.volume(claim?.spec?.volumeName)?.metadata.annotations?.[storageAnnotation.realClaimUid];
  const uids = [claim?.metadata.uid, moved].filter((uid) => uid !== undefined);
  // Its volume was never made: there is nothing to adopt.
  if (app.acknowledged.size === 0) {
    world.remake(app, app.size);
    return;
  }
  for (const [provider, { store }] of world.providers)
    for (const record of store.all(retainedVolumes)) {
      const { claim: had, adopt: order } = record.spec;
      if (had === undefined || !uids.includes(had.uid) || order !== undefined) continue;
      if (had.name !== app.claim)
        world.faults.push(`record ${record.metadata.name} names ${had.name}, not ${app.claim}`);
      store.replace({
        ...record,
        spec: { ...record.spec, adopt: { namespace: shopThere, claim: app.claim } },
      } as never);
      world.remake(app, record.spec.size, provider);
    }
}
