/** The sessions of one virtual node with its provider, of which one counts at a time: another kubeconfig replaces it. */

import type { ConnectCluster, ConnectedCluster } from '#agent/runtime/connect-cluster.ts';
import { sharedByMany } from '#shared/async/abort-scope.ts';
import { messageOf } from '#shared/errors/message-of.ts';
import type { Log } from '#shared/ports/log.ts';
import type { NamespaceMap } from '#shared/schema/liqo/namespace-map.ts';
import { ProviderSession, type SessionDeps } from './provider-session.ts';

export interface SessionsDeps {
  readonly connectPeer: ConnectCluster;
  /** What a session over this connection works with. */
  readonly over: (provider: ConnectedCluster) => SessionDeps;
  /** Resolves when so much is known that a session may begin its work; it begins with `map`. */
  readonly informed: (signal: AbortSignal) => Promise<unknown>;
  readonly map: () => NamespaceMap | undefined;
  readonly log: Log;
  /** There is another session. */
  readonly onSession: () => void;
  /** `problem` says something else. */
  readonly onProblem: () => void;
}

export class Sessions {
  readonly #deps: SessionsDeps;
  readonly #signal: AbortSignal;
  #kubeconfig: string | undefined;
  #current: ProviderSession | undefined;
  #problem: string | undefined;
  /** Replacements happen one after the other. */
  #connecting: Promise<void> = Promise.resolve();

  /** With `signal` every session ends. */
  constructor(deps: SessionsDeps, signal: AbortSignal) {
    this.#deps = deps;
    this.#signal = signal;
  }

  get current(): ProviderSession | undefined {
    return this.#current;
  }

  /** Why the kubeconfig of the moment has led to no session, for people. */
  get problem(): string | undefined {
    return this.#problem;
  }

  use(kubeconfig: string): void {
    if (kubeconfig === this.#kubeconfig) return;
    this.#kubeconfig = kubeconfig;
    this.#connecting = this.#connecting
      .then(() => this.#connect(kubeconfig))
      .catch((error: unknown) => {
        this.#problem = messageOf(error);
        this.#deps.log.warn('no connection to the provider', { error: this.#problem });
        this.#deps.onProblem();
      });
  }

  async #connect(kubeconfig: string): Promise<void> {
    if (this.#signal.aborted || kubeconfig !== this.#kubeconfig) return;
    const stop = new AbortController();
    // Each namespace and each cache of the session listens to it.
    sharedByMany(stop.signal);
    this.#signal.addEventListener('abort', () => stop.abort(), { once: true, signal: stop.signal });
    const provider = await this.#deps.connectPeer(kubeconfig, stop.signal);
    await this.#current?.end();
    const session = new ProviderSession(this.#deps.over(provider), stop);
    this.#current = session;
    this.#problem = undefined;
    this.#deps.informed(stop.signal).then(
      () => session.start(this.#deps.map()),
      // It has ended before.
      () => undefined,
    );
    this.#deps.onSession();
  }

  /** Resolves when `current` is what came of the last kubeconfig. */
  async settled(): Promise<void> {
    await this.#connecting;
  }

  async end(): Promise<void> {
    await this.#connecting;
    await this.#current?.end();
  }
}
