/** A claim that is to begin as a copy of another one, sent to drawn nodes, while the agents die before and after every write. */
import { randomOf } from '../orderings.ts';
import { isResting, runs, until } from './histories.ts';
import type { Disk } from './kubernetes.ts';
import { leftovers } from './leftovers.ts';
import { type ProviderName, shop, shopThere } from './names.ts';
import type { App } from './played.ts';
import { StorageWorld } from './world.ts';

export interface CopyScript {
  readonly seed: number;
  /** Where the source is made. */
  readonly at: ProviderName | 'local';
  /** Where it is moved to before the copy is made. */
  readonly movedTo?: ProviderName | 'local';
  readonly dies: boolean;
}

export interface CopyEnd {
  readonly faults: readonly string[];
  /** Clusters of both disks: of the source, then of the copy. */
  readonly clusters: readonly (string | undefined)[];
  /** Lines that the source had acknowledged when the copy was asked for, and that the copy lacks. */
  readonly missing: number;
  readonly had: number;
  readonly deaths: number;
  /** How often the scheduler was asked to choose again. */
  readonly rescheduled: number;
}

/** What the application has mounted; undefined: it does not run. */
export function diskOf(world: StorageWorld, app: App): Disk | undefined {
  for (const cluster of world.clusters) {
    const namespace = cluster === world.home ? shop : shopThere;
    const mount = [...cluster.mounts.values()].find(({ pod, labels }) => pod === app.pod && labels.app === app.name);
    if (mount && cluster.pod(namespace, app.pod)) return mount.disk;
  }
  return undefined;
}

export async function runCopy({ seed, at, movedTo, dies }: CopyScript): Promise<CopyEnd> {
  const world = new StorageWorld(randomOf(seed));
  const count = new Map<string, number>();
  const stuck: string[] = [];
  let deaths = 0;
  let rescheduled = 0;
  const must = async (what: string, holds: () => boolean): Promise<void> => {
    if (stuck.length === 0 && !(await until(world, holds))) stuck.push(`not in time: ${what}`);
  };
  world.addApp('a');
  const source = world.apps.get('a');
  if (!source) throw new Error('no application');
  try {
    source.pinned = at;
    await must('the source runs', () => runs(world, source) && source.acknowledged.size > 5);
    if (movedTo !== undefined) {
      world.startMove(source, movedTo);
      await must('the source has moved', () => isResting(world, source) && runs(world, source));
    }
    world.agents.fate = (agent, write, body) => {
      if (write === 'PersistentVolumeClaim mergePatch' && body.includes('selected-node')) rescheduled += 1;
      if (!dies) return 'lives';
      const key = `${agent} ${write} ${body}`;
      const earlier = count.get(key) ?? 0;
      count.set(key, earlier + 1);
      if (earlier > 1) return 'lives';
      deaths += 1;
      return earlier === 0 ? 'before' : 'after';
    };
    const had = new Set(source.acknowledged);
    world.addApp('b', { claim: source.claim });
    const copy = world.apps.get('b');
    if (!copy) throw new Error('no application');
    copy.pinned = (movedTo ?? at) === 'genoa' ? 'local' : 'genoa';
    await must('the scheduler is asked to choose again', () => rescheduled > 1);
    delete copy.pinned;
    await must('the copy runs', () => runs(world, copy) && runs(world, source) && leftovers(world).length === 0);
    const disks = [source, copy].map((app) => diskOf(world, app));
    const missing = [...had].filter((line) => !disks[1]?.lines.has(line)).length;
    // A copy is a volume like any other: what it once began with is no hindrance to a move.
    const target = disks[1]?.cluster === 'genoa' ? 'milan' : 'genoa';
    world.startMove(copy, target);
    await must('the copy has moved', () => isResting(world, copy) && runs(world, copy));
    if (diskOf(world, copy)?.cluster !== target) stuck.push(`the copy was not moved to ${target}`);
    return {
      faults: [...world.faults, ...stuck],
      clusters: disks.map((disk) => disk?.cluster),
      missing,
      had: had.size,
      deaths,
      rescheduled,
    };
  } finally {
    world.agents.end();
  }
}
