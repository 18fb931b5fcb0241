/**
 * Single flight for expensive reads: per key, one read is in flight and one waits, for any number of callers. A caller gets the answer of a
 * read that began after the question, so nothing that was true before it is missed.
 */
export function coalesced<T>(read: (key: string) => Promise<T>): (key: string) => Promise<T> {
  const reads = new Map<string, { current: Promise<T>; next?: Promise<T> }>();
  const start = (key: string): Promise<T> => {
    const entry: { current: Promise<T>; next?: Promise<T> } = { current: read(key) };
    reads.set(key, entry);
    const ended = (): void => {
      if (reads.get(key) === entry && entry.next === undefined) reads.delete(key);
    };
    entry.current.then(ended, ended);
    return entry.current;
  };
  return (key) => {
    const entry = reads.get(key);
    if (entry === undefined) return start(key);
    entry.next ??= entry.current.then(
      () => start(key),
      () => start(key),
    );
    return entry.next;
  };
}
