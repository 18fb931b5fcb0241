/** The two sides of each offloaded namespace, for one kind: caches that come and go with the mapping. */
import type { Cache, Change } from '#kube/model/types.ts';
import { abortsWith } from '#shared/async/abort-scope.ts';
import type { KubeObject } from '#shared/domain/kube-object.ts';
import type { Log } from '#shared/ports/log.ts';

export interface Sides<L extends KubeObject, R extends KubeObject> {
  readonly local: string;
  readonly remote: string;
  readonly here: Cache<L>;
  readonly there: Cache<R>;
}

export interface FollowedDeps<L extends KubeObject, R extends KubeObject> {
  /** The caches live until `signal` aborts; they may be shared. */
  readonly open: (local: string, remote: string, signal: AbortSignal) => Pick<Sides<L, R>, 'here' | 'there'>;
  readonly onHere: (namespace: string, change: Change<L>) => void;
  readonly onThere: (namespace: string, change: Change<R>) => void;
  /** Both sides of this local namespace are known now. */
  readonly onSynced: (sides: Sides<L, R>) => void;
  readonly log: Log;
}

interface Followed<L extends KubeObject, R extends KubeObject> extends Sides<L, R> {
  readonly end: () => void;
}

export class FollowedNamespaces<L extends KubeObject, R extends KubeObject> {
  readonly #deps: FollowedDeps<L, R>;
  readonly #signal: AbortSignal;
  readonly #followed = new Map<string, Followed<L, R>>();

  /** All following ends with `signal`. */
  constructor(deps: FollowedDeps<L, R>, signal: AbortSignal) {
    this.#deps = deps;
    this.#signal = signal;
  }

  /** Undefined: not followed. A namespace whose first lists are missing is returned: see `isSynced`. */
  of(local: string): Sides<L, R> | undefined {
    return this.#followed.get(local);
  }

  isSynced({ here, there }: Sides<L, R>): boolean {
    return here.isSynced() && there.isSynced();
  }

  list(): readonly Sides<L, R>[] {
    return [...this.#followed.values()];
  }

  /** `wanted`: local to remote name. Nothing after the end. */
  follow(wanted: ReadonlyMap<string, string>): void {
    if (this.#signal.aborted) return;
    for (const [local, { remote, end }] of [...this.#followed]) {
      if (wanted.get(local) === remote) continue;
      end();
      this.#followed.delete(local);
    }
    for (const [local, remote] of wanted) if (!this.#followed.has(local)) this.#start(local, remote);
  }

  /** Lists everything anew. */
  restart(): void {
    const wanted = new Map(this.list().map(({ local, remote }) => [local, remote]));
    this.follow(new Map());
    this.follow(wanted);
  }

  #start(local: string, remote: string): void {
    const { open, onHere, onThere, onSynced, log } = this.#deps;
    const stop = new AbortController();
    const signal = abortsWith(this.#signal, stop.signal);
    const sides = { local, remote, ...open(local, remote, signal) };
    const unsubscribes = [
      sides.here.subscribe((change) => onHere(local, change)),
      sides.there.subscribe((change) => onThere(local, change)),
    ];
    const unsubscribe = (): void => {
      for (const one of unsubscribes) one();
    };
    signal.addEventListener('abort', unsubscribe, { once: true });
    this.#followed.set(local, { ...sides, end: () => stop.abort() });
    Promise.all([sides.here.synced(signal), sides.there.synced(signal)]).then(
      () => onSynced(sides),
      (error: unknown) => {
        if (!signal.aborted) log.error('a namespace cannot be followed', error, { namespace: local, remote });
      },
    );
  }
}
