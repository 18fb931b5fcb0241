/**
 * Saving what a reader has edited: with the version that the form was opened on, so that an edit which another reader or a command made meanwhile is
 * not overwritten unseen. Versions count every change of an object; one that left the edited fields alone is no conflict.
 */

interface Versioned {
  readonly version: number;
}

interface Edit<T extends Versioned, R> {
  /** As the form showed it. */
  readonly from: T;
  /** What the form edits of it. */
  readonly fields: (of: T) => unknown;
  /** The same fields as they are to be. */
  readonly wanted: unknown;
  /** As it is now. */
  readonly read: () => Promise<T>;
  /** Rejects, so that `isStale` holds, when the object has another version. */
  readonly write: (version: number) => Promise<R>;
  readonly isStale: (error: unknown) => boolean;
  /** For the message: `labels`, `role and name`. */
  readonly what: string;
}

/** An object that changes all the time is one to save again by hand. */
const attempts = 4;

/** Members in any order. */
const textOf = (value: unknown): string =>
  JSON.stringify(value, (_, member: unknown) =>
    typeof member === 'object' && member !== null && !Array.isArray(member)
      ? Object.fromEntries(Object.entries(member).sort(([a], [b]) => (a < b ? -1 : 1)))
      : member,
  ) ?? '';

/** Rejects in words when another writer has changed the same fields. */
export async function save<T extends Versioned, R>({
  from,
  fields,
  wanted,
  read,
  write,
  isStale,
  what,
}: Edit<T, R>): Promise<R | T> {
  let { version } = from;
  for (let attempt = 1; ; attempt += 1) {
    try {
      return await write(version);
    } catch (error) {
      if (!isStale(error) || attempt === attempts) throw error;
    }
    const now = await read();
    // Also when the answer to the first request was lost and the second met its own work.
    if (textOf(fields(now)) === textOf(wanted)) return now;
    if (textOf(fields(now)) !== textOf(fields(from))) {
      throw new Error(
        `${what} changed while you were editing, and nothing was saved: close, look at what is there now, and edit again`,
      );
    }
    version = now.version;
  }
}
