/** Waits until something has come to rest: what is compared later must not still be on its way. */
import { type EventuallyOptions, eventually } from './eventually.ts';

interface Rest extends Pick<EventuallyOptions, 'withinMs'> {
  /** So many looks in a row, a second apart, see the same. */
  readonly looks?: number;
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
      return seen.length >= looks && new Set(seen.slice(-looks)).size === 1 && now;
    },
    { withinMs, everyMs: 1_000 },
  );
}
