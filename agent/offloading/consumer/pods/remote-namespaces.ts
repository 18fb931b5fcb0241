/** Follows our ShadowPods and their Pods at the provider, namespace by namespace, as namespaces come and go. */
import type { Cache, Caches } from '#kube/model/types.ts';
import { abortsWith } from '#shared/async/abort-scope.ts';
import { pods } from '#shared/domain/core-kinds.ts';
import type { Pod } from '#shared/domain/kube-object.ts';
import { label } from '#shared/domain/liqo-keys.ts';
import type { Log } from '#shared/ports/log.ts';
import { type ShadowPod, shadowPods } from '#shared/schema/liqo/shadow-pod.ts';
import { pruneRemotePod, pruneShadowPod } from './cache-transforms.ts';

export interface RemoteNamespace {
  readonly local: string;
  readonly remote: string;
  readonly shadows: Cache<ShadowPod>;
  readonly pods: Cache<Pod>;
  readonly isSynced: () => boolean;
}

export interface RemoteNamespacesDeps {
  readonly caches: Caches;
  readonly consumer: string;
  readonly provider: string;
  readonly nodeName: string;
  readonly log: Log;
  /** Something about this local pod (`namespace/name`) changed at the provider. */
  readonly onChange: (key: string) => void;
  /** Everything of this local namespace is worth a look: its caches are complete now, or gone. */
  readonly onNamespace: (namespace: string) => void;
}

interface Following extends RemoteNamespace {
  readonly stop: AbortController;
}

export class RemoteNamespaces {
  readonly #deps: RemoteNamespacesDeps;
  readonly #signal: AbortSignal;
  readonly #followed = new Map<string, Following>();

  /** All following ends with `signal`. */
  constructor(deps: RemoteNamespacesDeps, signal: AbortSignal) {
    this.#deps = deps;
    this.#signal = signal;
  }

  of(localNamespace: string): RemoteNamespace | undefined {
    return this.#followed.get(localNamespace);
  }

  list(): readonly RemoteNamespace[] {
    return [...this.#followed.values()];
  }

  /** Starts and stops until exactly `wanted` (local to remote name) is followed. */
  follow(wanted: ReadonlyMap<string, string>): void {
    for (const [local, following] of [...this.#followed]) {
      if (wanted.get(local) === following.remote) continue;
      following.stop.abort();
      this.#followed.delete(local);
      this.#deps.onNamespace(local);
    }
    for (const [local, remote] of wanted) if (!this.#followed.has(local)) this.#start(local, remote);
  }

  /** Lists everything anew, now: after an outage the watches would wait out their back-off. */
  restart(): void {
    const wanted = new Map(this.list().map(({ local, remote }) => [local, remote]));
    for (const { stop } of this.#followed.values()) stop.abort();
    this.#followed.clear();
    this.follow(wanted);
  }

  #start(local: string, remote: string): void {
    const { caches, consumer, provider, nodeName, log, onChange, onNamespace } = this.#deps;
    const stop = new AbortController();
    const signal = abortsWith(this.#signal, stop.signal);
    const labelSelector = `${label.origin}=${consumer},${label.destination}=${provider},${label.nodeName}=${nodeName}`;
    const options = { namespace: remote, labelSelector };
    const shadows = caches.scoped(shadowPods, { ...options, transform: pruneShadowPod }, signal);
    const remotePods = caches.scoped(pods, { ...options, transform: pruneRemotePod }, signal);
    const isSynced = (): boolean => shadows.isSynced() && remotePods.isSynced();
    const tell = (object: { metadata: { name: string } } | undefined): void => {
      if (object) onChange(`${local}/${object.metadata.name}`);
    };
    for (const cache of [shadows, remotePods] as const) cache.subscribe(({ before, after }) => tell(after ?? before));
    this.#followed.set(local, { local, remote, shadows, pods: remotePods, isSynced, stop });
    Promise.all([shadows.synced(signal), remotePods.synced(signal)]).then(
      () => onNamespace(local),
      (error: unknown) => {
        if (!signal.aborted) log.error('a namespace at the provider cannot be followed', error, { namespace: remote });
      },
    );
  }
}
