/** Reading what no signal keeps: once, again after a change, and when an event says that there is news. */
import { useCallback, useEffect, useRef, useState } from 'preact/hooks';
import { holder, messageOf } from '../data/api.ts';
import { events } from '../data/live.ts';
import { allows, type Right } from '../model/rights.ts';

export interface Loaded<T> {
  readonly data: T | undefined;
  readonly failure: string | undefined;
  readonly reload: () => Promise<void>;
}

/** `subject`: an event about one of its kind, such as `invitation`, makes it read again. */
export function useLoad<T>(read: () => Promise<T>, deps: readonly unknown[] = [], subject?: string): Loaded<T> {
  const [data, setData] = useState<T>();
  const [failure, setFailure] = useState<string>();
  const latest = useRef(0);
  const reload = useCallback(async () => {
    latest.current += 1;
    const own = latest.current;
    try {
      const found = await read();
      if (own !== latest.current) return;
      setData(() => found);
      setFailure(undefined);
    } catch (error) {
      if (own === latest.current) setFailure(messageOf(error));
    }
  }, deps);
  const news = subject === undefined ? '' : events.value.findLast((event) => event.subject.startsWith(subject))?.id;
  useEffect(() => {
    void reload();
  }, [reload, news]);
  return { data, failure, reload };
}

/** Whether the page may offer it. */
export const can = (right: Right): boolean => holder.value?.kind === 'member' && allows(holder.value, right);
