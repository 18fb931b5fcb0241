/**
 * One history of kept volumes at a provider: claims of a guest come, are used and end, with and without the order to delete their data, and what is kept is
 * reserved, given back, ends again or is discarded, while the agent dies before and after drawn writes and its caches lag.
 */
import type { RetainedVolume } from '#shared/schema/isthmus/retained-volume.ts';
import { randomOf } from '../orderings.ts';
import { Provider, rescue } from './provider.ts';

const claimNames = ['data-0', 'data-1'] as const;

export interface AdoptionHistory {
  readonly steps: readonly string[];
  readonly faults: readonly string[];
  /** How often a claim got a volume by an order. */
  readonly adopted: number;
}

/**
 * `isRestless`: the administrator also takes orders back, and everything else goes on between what the agent reads and what it writes. `isCrowded`: three
 * volumes of one claim are kept from the beginning, orders are given for most of them, and no other claim comes.
 */
export async function runAdoptions(seed: number, isRestless = false, isCrowded = false): Promise<AdoptionHistory> {
  const random = randomOf(seed + 7_919);
  const drawn = <T>(from: readonly T[]): T => from[Math.floor(random() * from.length)] as T;
  const steps: string[] = [];
  const names = isCrowded ? (['data-0'] as const) : claimNames;
  let mayDie = !isCrowded;
  const mortality = random() < 0.5 ? 0.15 : 0;
  const world = new Provider(seed, () => {
    if (isRestless && mayDie) happen();
    if (!mayDie || random() >= mortality) return 'lives';
    const fate = random() < 0.5 ? 'before' : 'after';
    steps.push(`agent dies ${fate} a write`);
    return fate;
  });
  const record = (): RetainedVolume | undefined => (world.records().length > 0 ? drawn(world.records()) : undefined);
  const withRecord = (act: (of: RetainedVolume) => void) => () => {
    const of = record();
    return of && act(of);
  };
  // Until the agent has carried out another order than before, the first one holds.
  const adoptFreely = (of: RetainedVolume): void => {
    if (isRestless || of.spec.adopt === undefined) world.adopt(of);
  };
  const acts: (readonly [string, () => void])[] = [
    ['make', () => world.make(drawn(names))],
    ['make', () => world.make(drawn(names))],
    ['make unpublished', () => world.make(drawn(names), false)],
    ['publish', () => world.publish(drawn(names))],
    ['end', () => world.end(drawn(names), false)],
    ['end', () => world.end(drawn(names), false)],
    ['end with data', () => world.end(drawn(names), true)],
    ['adopt', withRecord(adoptFreely)],
    ['adopt', withRecord(adoptFreely)],
    [
      'rescue',
      withRecord((of) => {
        if (of.spec.adopt !== undefined || of.spec.discard) return;
        world.adopt(of, { namespace: rescue, claim: of.metadata.name });
        world.makeRescue(of.metadata.name, of.metadata.name);
      }),
    ],
    ['end a rescue', withRecord((of) => world.end(of.metadata.name, false, rescue))],
    ['discard', withRecord((of) => world.discard(of))],
  ];
  if (isCrowded) for (let i = 0; i < 2; i++) acts.push(['adopt', withRecord(adoptFreely)]);
  if (isRestless) for (let i = 0; i < 3; i++) acts.push(['take back', withRecord((of) => world.takeBack(of))]);
  function happen(): void {
    const chance = random();
    if (chance < 0.3) world.milan.play(() => true, 0.5);
    if (chance >= 0.2) return;
    const [name, act] = drawn(acts);
    steps.push(`${name} before a write`);
    act();
  }
  try {
    for (let kept = 0; isCrowded && kept < 3; kept++) {
      world.make('data-0');
      await world.rest();
      world.end('data-0', false);
      await world.rest();
    }
    mayDie = true;
    const many = 8 + Math.floor(random() * 16);
    for (let i = 0; i < many && world.faults.length === 0; i++) {
      const [name, act] = drawn(acts);
      steps.push(name);
      act();
      const turns = Math.floor(random() * (isCrowded ? 4 : 10));
      for (let turn = 0; turn < turns; turn++) {
        await world.turn(0.4 + 0.6 * random(), Math.floor(random() * 20));
        if (random() < 0.7) world.agents.start();
      }
    }
    mayDie = false;
    if (world.faults.length === 0) {
      await world.rest();
      world.expectSettled();
    }
    return { steps, faults: world.faults, adopted: world.adopted };
  } finally {
    world.agents.end();
  }
}
