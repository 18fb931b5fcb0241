/** An AbortController that also aborts with a parent, and lets go of it: `AbortSignal.any` in a loop leaks on Node 20 and 24. */
import { setMaxListeners } from 'node:events';

/** Node 20 suspects a leak when more than ten listen to one signal; ours are shared by everything that runs. */
export function sharedByMany(signal: AbortSignal): AbortSignal {
  setMaxListeners(0, signal);
  return signal;
}

export interface LinkedAbort {
  readonly signal: AbortSignal;
  abort(reason?: unknown): void;
  /** Call when done; the parent then no longer holds this one. */
  unlink(): void;
}

/** The parent may have any number of scopes at a time: the warning of a leak is for listeners that no scope takes off again. */
export function abortScope(parent: AbortSignal): LinkedAbort {
  sharedByMany(parent);
  const controller = new AbortController();
  const follow = (): void => controller.abort(parent.reason);
  if (parent.aborted) follow();
  else parent.addEventListener('abort', follow, { once: true });
  return {
    signal: sharedByMany(controller.signal),
    abort: (reason) => controller.abort(reason),
    unlink: () => parent.removeEventListener('abort', follow),
  };
}

/** Aborts with either. `until` is the shorter of the two and aborts in any case: by then the parent has let go of it. */
export function abortsWith(parent: AbortSignal, until: AbortSignal): AbortSignal {
  const link = abortScope(parent);
  const end = (): void => {
    link.unlink();
    link.abort(until.reason);
  };
  if (until.aborted) end();
  else until.addEventListener('abort', end, { once: true });
  return link.signal;
}
