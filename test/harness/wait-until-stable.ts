/** Waits until something has come to rest: what is compared later must not still be on its way. */
import { type EventuallyOptions, eventually } from './eventually.ts';

interface Rest extends Pick<EventuallyOptions, 'withinMs'> {
  /** So many looks in a row, a second apart, see the same. */
  readonly looks?: number;
}

/** Where two sights part, with what stands around that. */
function change(before: string, after: string): string {
  let at = 0;
  while (at < before.length && before[at] === after[at]) at += 1;
  const around = (text: string): string => text.slice(Math.max(0, at - 150), at + 150);
  return `…${around(before)}… became …${around(after)}…`;
}

/** Resolves with what `look` saw last. `told`: equal for equal sights. */
export async function waitUntilStable<T extends object | string>(
  what: string,
  look: () => Promise<T>,
  { withinMs = 60_000, looks = 3 }: Rest = {},
  reported: (sight: T) => string = (sight) => JSON.stringify(sight),
): Promise<T> {
  const seen: string[] = [];
  return eventually<T>(
    `${what} at rest`,
    async () => {
      const now = await look();
      seen.push(reported(now));
      const last = seen.slice(-looks);
      if (last.length === looks && new Set(last).size === 1) return now;
      const changedAt = seen.findLastIndex((sight, at) => at > 0 && sight !== seen[at - 1]);
      throw new Error(changedAt < 0 ? 'too few looks' : change(seen[changedAt - 1] ?? '', seen[changedAt] ?? ''));
    },
    { withinMs, everyMs: 1_000 },
  );
}
