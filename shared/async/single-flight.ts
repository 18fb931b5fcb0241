/**
 * Single flight for expensive reads: for any number of concurrent callers, one read per key is under way and one waits. A caller gets the answer of a
 * read that began after its call, so its answer is never older than the call.
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
