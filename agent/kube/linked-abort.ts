/** An AbortController that also aborts with a parent, and lets go of it: `AbortSignal.any` in a loop leaks on Node 20 and 24. */
export interface LinkedAbort {
  readonly signal: AbortSignal;
  abort(reason?: unknown): void;
  /** Call when done; the parent then no longer holds this one. */
  unlink(): void;
}

export function linkedAbort(parent: AbortSignal): LinkedAbort {
  const controller = new AbortController();
  const follow = (): void => controller.abort(parent.reason);
  if (parent.aborted) follow();
  else parent.addEventListener('abort', follow, { once: true });
  return {
    signal: controller.signal,
    abort: (reason) => controller.abort(reason),
    unlink: () => parent.removeEventListener('abort', follow),
  };
}
