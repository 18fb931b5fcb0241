/** Which bed (by its state folder) owns which addresses and names of this machine. Kept where a reboot forgets it. */
import { mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { AppError } from '#shared/errors/app-error.ts';
import { slotCount } from './spec.ts';

const registry = '/run/isthmus-testbed';

export interface Slot {
  readonly slot: number;
  /** The state folder. */
  readonly dir: string;
}

/** What changes a slot does so under the machine's lock; reads need no lock and may run while another bed goes. */
export function takenSlots(): Slot[] {
  return unlessGone(() => readdirSync(registry), []).flatMap((name) => {
    const dir = unlessGone(() => readFileSync(path.join(registry, name), 'utf8').trim(), '');
    return dir === '' ? [] : [{ slot: Number(name), dir }];
  });
}

function unlessGone<T>(read: () => T, otherwise: T): T {
  try {
    return read();
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return otherwise;
    throw error;
  }
}

export const slotOf = (dir: string): number | undefined => takenSlots().find((taken) => taken.dir === dir)?.slot;

export function takeSlot(dir: string): number {
  const own = slotOf(dir);
  if (own !== undefined) return own;
  const taken = new Set(takenSlots().map(({ slot }) => slot));
  const free = Array.from({ length: slotCount }, (_, i) => i).find((slot) => !taken.has(slot));
  if (free === undefined)
    throw new AppError('in_use', `all ${slotCount} test beds of this machine are in use: take one down`);
  mkdirSync(registry, { recursive: true });
  writeFileSync(path.join(registry, String(free)), `${dir}\n`);
  return free;
}

export function releaseSlot(slot: number): void {
  rmSync(path.join(registry, String(slot)), { force: true });
  if (takenSlots().length === 0) rmSync(registry, { recursive: true, force: true });
}
