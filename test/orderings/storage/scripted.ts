/** Moves whose agents die at every single write: once before it is carried out, then, when the next agent comes to it, after. */
import { randomOf } from '../orderings.ts';
import type { Fate } from './agents.ts';
import { isResting, runs, until } from './histories.ts';
import { leftovers } from './leftovers.ts';
import { StorageWorld } from './world.ts';

export type Turn =
  | readonly [move: string]
  | readonly ['order', string]
  | readonly ['delete']
  | readonly ['resize', string]
  /** The undo window ends, and in the same moment comes this order. */
  | readonly ['late', string?]
  /** So much time passes, and nothing has to come to rest. */
  | readonly ['minutes', string];

const undoWindowMs = 3_600_000;

export interface Script {
  readonly faults: readonly string[];
  readonly world: StorageWorld;
  /** How often agents died, and at which writes both before and after. */
  readonly deaths: number;
  readonly survived: readonly string[];
}

/** Of each write of an agent the first attempt is its death before it is carried out, the second its death after; later ones live. */
export class DeathsAtEveryWrite {
  count = 0;
  readonly #died = { before: new Set<string>(), after: new Set<string>() };
  readonly #attempts = new Map<string, number>();

  readonly fate: Fate = (agent, write, body) => {
    const key = `${agent} ${write} ${body}`;
    const earlier = this.#attempts.get(key) ?? 0;
    this.#attempts.set(key, earlier + 1);
    if (earlier > 1) return 'lives';
    this.count += 1;
    const fate = earlier === 0 ? 'before' : 'after';
    this.#died[fate].add(`${agent} ${write}`);
    return fate;
  };

  /** As `AGENT KIND method`: what was once lost and once carried out without an answer. */
  get survived(): readonly string[] {
    return [...this.#died.before].filter((write) => this.#died.after.has(write)).sort();
  }
}

/** `dies`: at every write. `disturb`: what happens in each round. Each turn begins when the one before has come to rest. */
export async function runScript(
  turns: readonly Turn[],
  dies: boolean,
  disturb: (world: StorageWorld) => void = () => undefined,
): Promise<Script> {
  const world = new StorageWorld(randomOf(1));
  const deaths = new DeathsAtEveryWrite();
  world.addApp('a');
  const [app] = world.apps.values();
  if (!app) throw new Error('no application');
  app.pinned = 'milan';
  try {
    await until(world, () => runs(world, app));
    if (dies) world.agents.fate = deaths.fate;
    for (const turn of turns) {
      const [what, of] = turn;
      let endMs = 0;
      if (what === 'order') world.order(app, of ?? '');
      else if (what === 'late') {
        world.clock.advance(undoWindowMs);
        if (of !== undefined) world.order(app, of);
      } else if (what === 'minutes') endMs = world.clock.now() + Number(of) * 60_000;
      else if (what === 'delete') world.deleteMove(app);
      else if (what === 'resize') world.resize(app, of ?? '');
      else world.startMove(app, what);
      const generation = world.move(app)?.metadata.generation;
      const isTaken = (): boolean => {
        const move = world.move(app);
        // One that the disturbance deleted has no order left.
        return what !== 'order' || move === undefined || move.status?.settledGeneration === generation;
      };
      const isGone = (): boolean => what !== 'delete' || world.move(app) === undefined;
      const isDone = (): boolean => {
        disturb(world);
        if (what === 'late' || what === 'minutes') return world.clock.now() >= endMs;
        return isTaken() && isGone() && isResting(world, app) && runs(world, app) && leftovers(world).length === 0;
      };
      const done = await until(world, isDone);
      if (!done) {
        const state = JSON.stringify(world.move(app)?.status ?? 'no move');
        return {
          faults: [...world.faults, ...leftovers(world), `after ${turn.join(' ')}: ${state}`],
          world,
          deaths: deaths.count,
          survived: [],
        };
      }
    }
    return { faults: world.faults, world, deaths: deaths.count, survived: deaths.survived };
  } finally {
    world.agents.end();
  }
}
