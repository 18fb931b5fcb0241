/** Which bed (by its state folder) owns which addresses and names of this machine. Kept where a reboot forgets it. */
import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { AppError } from '#shared/errors/app-error.ts';
import { slotCount } from './spec.ts';

const registry = '/run/isthmus-testbed';

export interface Slot {
  readonly slot: number;
  /** The state folder. */
  readonly dir: string;
}

/** Call it, like everything here, under the machine's lock. */
export function takenSlots(): Slot[] {
  if (!existsSync(registry)) return [];
  return readdirSync(registry).map((name) => ({
    slot: Number(name),
    dir: readFileSync(path.join(registry, name), 'utf8').trim(),
  }));
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
