/** Gives the pods of one virtual node tokens of their own cluster, as Secrets beside them at the provider, and keeps those fresh. */
import type { ControllerMetrics } from '#kube/model/metrics.ts';
import type { Cache, Cluster, Controller } from '#kube/model/types.ts';
import { createController } from '#kube/run/controller.ts';
import { abortsWith } from '#shared/async/abort-scope.ts';
import { backoffMs } from '#shared/async/backoff.ts';
import { secrets, serviceAccounts } from '#shared/domain/core-kinds.ts';
import { namespaceOfKey, type Pod, refOf, refOfKey, type Secret } from '#shared/domain/kube-object.ts';
import { annotation, label } from '#shared/domain/liqo-keys.ts';
import { again, type Outcome, settled, waiting } from '#shared/domain/outcome.ts';
import { AppError, codeOf } from '#shared/errors/app-error.ts';
import type { Clock } from '#shared/ports/clock.ts';
import type { Log } from '#shared/ports/log.ts';
import { toBase64 } from '../../pki/pem.ts';
import { EventDedupe } from '../engine/event-dedupe.ts';
import type { ProviderClients } from '../engine/provider-clients.ts';
import { type HomeApi, type TokenRequest, tokenSecretName } from '../model/api-access.ts';
import { withDigests } from '../model/digests.ts';
import { pruneMetadata } from '../model/metadata.ts';
import type { ReflectedItems } from '../model/reflected-items.ts';
import { accountOf, decide, type Issued, isTokenSecret, type TokenContext, tokenSecret } from './decide.ts';

export interface TokenReflectorDeps extends TokenContext {
  readonly local: Pick<Cluster, 'api' | 'events'>;
  readonly peer: ProviderClients;
  /** Pods bound to this virtual node. */
  readonly localPods: Cache<Pod>;
  /** As the pods of that namespace use it. */
  readonly home: (namespace: string) => HomeApi | undefined;
  /** Calls back with a namespace whose pods may get tokens from now on, or no longer; returns the function that ends it. */
  readonly onSwitch: (look: (namespace: string) => void) => () => void;
  readonly workers: number;
  readonly clock: Clock;
  readonly log: Log;
  readonly metrics?: ControllerMetrics;
  readonly random?: () => number;
}

interface Followed {
  readonly remote: string;
  readonly there: Cache<Secret>;
  readonly stop: AbortController;
}

interface TokenReview {
  readonly status: { readonly token: string; readonly expirationTimestamp: string };
}

/** So that the tokens of pods that started together are not renewed together. */
const jitterMs = 30_000;
const refusedMs = (attempt: number): number => backoffMs(attempt, { baseMs: 500, maxMs: 30_000 });

export class TokenReflector {
  readonly #deps: TokenReflectorDeps;
  readonly #signal: AbortSignal;
  readonly #followed = new Map<string, Followed>();
  readonly #controller: Controller;
  readonly #dedupe: EventDedupe;

  constructor(deps: TokenReflectorDeps, signal: AbortSignal) {
    this.#deps = deps;
    this.#signal = signal;
    this.#dedupe = new EventDedupe(deps.local.events);
    const { workers } = deps;
    this.#controller = createController(
      {
        name: 'reflect-serviceaccount',
        watches: [],
        workers,
        ownerOf: namespaceOfKey,
        reconcile: (...args) => this.#reconcile(...args),
      },
      deps,
    );
  }

  /** Local to remote names. */
  follow(wanted: ReadonlyMap<string, string>): void {
    for (const [local, { remote, stop }] of [...this.#followed]) {
      if (wanted.get(local) === remote) continue;
      stop.abort();
      this.#followed.delete(local);
    }
    for (const [local, remote] of wanted) if (!this.#followed.has(local)) this.#start(local, remote);
  }

  restart(): void {
    const wanted = new Map([...this.#followed].map(([local, { remote }]) => [local, remote]));
    this.follow(new Map());
    this.follow(wanted);
  }

  /** `namespace/name` of a pod here. */
  look(key: string): void {
    this.#controller.enqueue(key);
  }

  /** Tokens of pods' accounts that are there now. */
  items(): ReflectedItems[] {
    return [...this.#followed].map(([namespace, { there }]) => {
      return { namespace, controller: this.#controller.name, count: there.list().length };
    });
  }

  async run(signal: AbortSignal): Promise<void> {
    const unsubscribe = this.#deps.localPods.subscribe(({ before, after }) => {
      const pod = after ?? before;
      if (pod && (!before || !after || before.status?.phase !== after.status?.phase)) this.look(keyOfPod(pod));
    });
    const forget = this.#deps.onSwitch((namespace) => {
      for (const pod of this.#deps.localPods.byIndex('namespace', namespace)) this.look(keyOfPod(pod));
    });
    try {
      await this.#controller.run(signal);
    } finally {
      forget();
      unsubscribe();
    }
  }

  #start(local: string, remote: string): void {
    const { consumer, provider, nodeName, peer, localPods, log } = this.#deps;
    const stop = new AbortController();
    const signal = abortsWith(this.#signal, stop.signal);
    const labelSelector = `${label.origin}=${consumer},${label.destination}=${provider},${label.nodeName}=${nodeName}`;
    const transform = (secret: Secret): Secret => withDigests(pruneMetadata(secret), ['data']);
    const there = peer.caches.scoped(secrets, { namespace: remote, labelSelector, transform }, signal);
    this.#followed.set(local, { remote, there, stop });
    there.subscribe(({ before, after }) => {
      const pod = (after ?? before)?.metadata.annotations?.[annotation.tokenPodName];
      if (pod !== undefined) this.look(`${local}/${pod}`);
    });
    Promise.all([there.synced(signal), localPods.synced(signal)]).then(
      () => {
        for (const pod of localPods.byIndex('namespace', local)) this.look(keyOfPod(pod));
        for (const { metadata } of there.list()) {
          const pod = metadata.annotations?.[annotation.tokenPodName];
          if (pod !== undefined) this.look(`${local}/${pod}`);
        }
      },
      (error: unknown) => {
        if (!signal.aborted) log.error('the tokens of a namespace cannot be followed', error, { namespace: remote });
      },
    );
  }

  async #reconcile(key: string, signal: AbortSignal): Promise<Outcome> {
    const { namespace = '', name } = refOfKey(key);
    const { localPods, clock, peer, random = Math.random } = this.#deps;
    const followed = this.#followed.get(namespace);
    if (!followed?.there.isSynced() || !localPods.isSynced()) return settled;
    const pod = localPods.get({ namespace, name });
    if (!pod) this.#dedupe.forget(key);
    const at = { namespace: followed.remote, name: tokenSecretName(name) };
    const secret = followed.there.get(at);
    const action = decide({ pod, secret, home: this.#deps.home(namespace), nowMs: clock.now() });
    switch (action.do) {
      case 'nothing':
        return settled;
      case 'wait':
        return again(action.afterMs + random() * jitterMs);
      case 'delete':
        await peer.api.delete(secrets, at, { uid: action.uid }, signal);
        return again(100);
      case 'issue':
        return pod ? this.#issue(key, pod, secret, at.namespace, action.wishes, signal) : settled;
    }
  }

  async #issue(
    key: string,
    pod: Pod,
    secret: Secret | undefined,
    namespace: string,
    wishes: readonly TokenRequest[],
    signal: AbortSignal,
  ): Promise<Outcome> {
    try {
      const issued: Issued[] = [];
      for (const desired of wishes) issued.push(await this.#request(pod, desired, signal));
      const wanted = tokenSecret(pod, namespace, issued, this.#deps);
      const written = await this.#write(wanted, secret, signal);
      if (written === 'taken') {
        const message = `Secret ${namespace}/${wanted.metadata.name} at cluster ${this.#deps.provider} is not ours and is left alone; the pod waits for its tokens`;
        this.#dedupe.emit(key, pod, 'Warning', 'FailedSATokensReflection', message);
        return waiting(message, 60_000);
      }
      this.#dedupe.succeeded(key);
      if (!secret)
        this.#dedupe.emit(key, pod, 'Normal', 'SuccessfulSATokensReflection', `tokens of ${accountOf(pod)} sent`);
      // The cache tells when to renew.
      return settled;
    } catch (error) {
      const code = codeOf(error);
      if (code === 'kube_conflict') return again(100);
      if (code !== 'kube_invalid' && code !== 'kube_forbidden' && code !== 'kube_not_found') throw error;
      const attempt = this.#dedupe.failed(key);
      const message = `no tokens of service account ${accountOf(pod)}: ${error instanceof AppError ? error.message : code}`;
      if (attempt >= 3) this.#dedupe.emit(key, pod, 'Warning', 'FailedSATokensReflection', message);
      return waiting(message, refusedMs(attempt));
    }
  }

  async #request(pod: Pod, { key, audience, seconds }: TokenRequest, signal: AbortSignal): Promise<Issued> {
    const { name, namespace, uid } = pod.metadata;
    const request = {
      apiVersion: 'authentication.k8s.io/v1',
      kind: 'TokenRequest',
      spec: {
        audiences: audience === undefined ? [] : [audience],
        expirationSeconds: seconds,
        boundObjectRef: { kind: 'Pod', apiVersion: 'v1', name, uid },
      },
    };
    const account = { namespace: namespace ?? '', name: accountOf(pod) };
    const { status } = await this.#deps.local.api.post<never, TokenReview>(
      serviceAccounts as never,
      account,
      'token',
      request,
      signal,
    );
    return { key, token: toBase64(status.token), expires: status.expirationTimestamp };
  }

  async #write(wanted: Secret, known: Secret | undefined, signal: AbortSignal): Promise<'written' | 'taken'> {
    const { api } = this.#deps.peer;
    const ref = refOf(wanted);
    let uid = known?.metadata.uid;
    if (uid === undefined) {
      try {
        await api.create(secrets, wanted, { answer: 'metadata' }, signal);
        return 'written';
      } catch (error) {
        if (codeOf(error) !== 'kube_already_exists') throw error;
        const found = await api.get(secrets, ref, signal);
        if (found && !isTokenSecret(found, this.#deps)) return 'taken';
        uid = found?.metadata.uid;
      }
    }
    const { labels, annotations } = wanted.metadata;
    const patch = [
      { op: 'test', path: '/metadata/uid', value: uid },
      { op: 'add', path: '/metadata/labels', value: labels },
      { op: 'add', path: '/metadata/annotations', value: annotations },
      { op: 'add', path: '/data', value: wanted.data },
    ];
    await api.jsonPatch(secrets, ref, patch, { answer: 'metadata' }, signal);
    return 'written';
  }
}

const keyOfPod = ({ metadata }: Pod): string => `${metadata.namespace}/${metadata.name}`;
