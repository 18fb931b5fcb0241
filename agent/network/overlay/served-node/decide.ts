/** Which Nodes have to be marked, and which no longer, as the one whose work is done beside the controllers. Pure. */

export interface Marks {
  readonly mark?: string;
  readonly unmark: readonly string[];
}

/** `served`: the node that this process works for; undefined: none, each node has a process of its own. */
export function decide(marked: readonly string[], served: string | undefined): Marks {
  const unmark = marked.filter((name) => name !== served);
  return served === undefined || marked.includes(served) ? { unmark } : { mark: served, unmark };
}
