/** Keeps the objects of one kind equal at one provider, in every namespace that is offloaded there. */
import { type FollowedNamespace, NamespacedCaches } from '#kube/cache/namespaced-caches.ts';
import type { ControllerMetrics } from '#kube/model/metrics.ts';
import type { Cache, Cluster, Controller } from '#kube/model/types.ts';
import { createController } from '#kube/run/controller.ts';
import { backoffMs } from '#shared/async/backoff.ts';
import { type KubeObject, namespaceOfKey, refOfKey } from '#shared/domain/kube-object.ts';
import { again, type Outcome, settled, waiting } from '#shared/domain/outcome.ts';
import { codeOf } from '#shared/errors/app-error.ts';
import { messageOf } from '#shared/errors/message-of.ts';
import type { Clock } from '#shared/ports/clock.ts';
import type { Log } from '#shared/ports/log.ts';
import type { ClusterFacts, OutgoingKind, Pair, Shape } from '../kinds/kind.ts';
import { buildCopy, foreignOwner, isOurs, pruneMetadata } from '../model/metadata.ts';
import type { ReflectedItems } from '../model/reflected-items.ts';
import { applyAction, type Subject, wholeCopy } from './apply.ts';
import { type DesiredCopy, decide } from './decide.ts';
import { EventDedupe } from './event-dedupe.ts';
import type { ReflectorOptions } from './options.ts';
import type { ProviderClients } from './provider-clients.ts';
import type { SharedScopes } from './shared-watches.ts';

export interface ReflectorDeps extends Pair {
  readonly local: Pick<Cluster, 'api' | 'events'>;
  readonly scopes: SharedScopes;
  readonly peer: ProviderClients;
  readonly shape: Shape;
  readonly around: ClusterFacts;
  readonly clock: Clock;
  readonly log: Log;
  readonly metrics?: ControllerMetrics;
}

/** One offloaded namespace, here and at the provider. */
interface Sides {
  readonly here: Cache<KubeObject>;
  readonly there: Cache<KubeObject>;
}

export interface ReflectorRules extends ReflectorOptions {
  /** Whether the policy lets this object go; what the kind itself excludes is not asked about. */
  readonly allows: (local: KubeObject) => boolean;
  /** False while what `allows` needs of this namespace is not known. */
  readonly isInformed?: (namespace: string) => boolean;
  readonly onChange?: (namespace: string, name: string) => void;
}

/** Pods' tokens have Secrets of their own, which carry the virtual node's name; see tokens/. */
const notOfOneNode = '!offloading.liqo.io/nodename';
const unknownYetMs = 60_000;
/** Thousands that are refused may not cost the provider thousands of requests a minute. */
const refusedMs = (attempt: number): number => backoffMs(attempt, { baseMs: 500, maxMs: 5 * 60_000 });

export class Reflector {
  readonly kind: OutgoingKind;
  readonly #deps: ReflectorDeps;
  readonly #rules: ReflectorRules;
  readonly #namespaces: NamespacedCaches<Sides>;
  readonly #controller: Controller;
  readonly #dedupe: EventDedupe;

  constructor(kind: OutgoingKind, rules: ReflectorRules, deps: ReflectorDeps, signal: AbortSignal) {
    this.kind = kind;
    this.#rules = rules;
    this.#deps = deps;
    this.#dedupe = new EventDedupe(deps.local.events);
    const { consumer, log } = deps;
    const key = (namespace: string, name: string): void => this.#controller.enqueue(`${namespace}/${name}`);
    this.#namespaces = new NamespacedCaches<Sides>(
      {
        open: (local, remote, until) => this.#open(local, remote, until),
        onChange: {
          here: (namespace, { before, after }) => {
            const name = (after ?? before)?.metadata.name;
            if (name === undefined) return;
            key(namespace, name);
            rules.onChange?.(namespace, name);
          },
          there: (namespace, { before, after }) => {
            const name = (after ?? before)?.metadata.name;
            if (name !== undefined) key(namespace, kind.localName(name, consumer));
          },
        },
        onSynced: (sides) => this.#lookAt(sides),
        log,
      },
      signal,
    );
    this.#controller = createController(
      {
        name: `reflect-${kind.name}`,
        watches: [],
        workers: rules.workers,
        ownerOf: namespaceOfKey,
        reconcile: (...args) => this.#reconcile(...args),
      },
      deps,
    );
  }

  follow(wanted: ReadonlyMap<string, string>): void {
    this.#namespaces.follow(wanted);
  }

  restart(): void {
    this.#namespaces.restart();
  }

  look(key: string): void {
    this.#controller.enqueue(key);
  }

  /** Of one local namespace, or of all. */
  lookAtAll(namespace?: string): void {
    for (const sides of this.#namespaces.list()) {
      if (namespace === undefined || sides.local === namespace) this.#lookAt(sides);
    }
  }

  /** Looks at the objects here that have this value in this index of the kind. */
  lookAtIndexed(namespace: string, index: string, value: string): void {
    for (const { metadata } of this.#namespaces.of(namespace)?.here.byIndex(index, value) ?? []) {
      this.look(`${namespace}/${metadata.name}`);
    }
  }

  namespaces(): readonly string[] {
    return this.#namespaces.list().map(({ local }) => local);
  }

  isSynced(namespace: string): boolean {
    return this.#namespaces.of(namespace)?.here.isSynced() ?? false;
  }

  get(namespace: string, name: string): KubeObject | undefined {
    return this.#namespaces.of(namespace)?.here.get({ namespace, name });
  }

  /** Copies of ours that are there now. */
  items(): ReflectedItems[] {
    return this.#namespaces.list().map(({ local, there }) => ({
      namespace: local,
      controller: this.#controller.name,
      count: there.list().filter((object) => isOurs(object, this.#deps)).length,
    }));
  }

  run(signal: AbortSignal): Promise<void> {
    return this.#controller.run(signal);
  }

  #open(local: string, remote: string, signal: AbortSignal): Sides {
    const { kind } = this;
    const prune = (object: KubeObject): KubeObject => kind.prune(pruneMetadata(object));
    const here = this.#deps.scopes.use(
      kind.name,
      kind.local,
      { namespace: local, transform: prune, ...(kind.indexes ? { indexes: kind.indexes } : {}) },
      signal,
    );
    const there = this.#deps.peer.caches.scoped(
      kind.remote,
      {
        namespace: remote,
        labelSelector: notOfOneNode,
        transform: (object) => (isOurs(object, this.#deps) ? prune(object) : foreignOwner(object)),
      },
      signal,
    );
    return { here, there };
  }

  #lookAt({ local, here, there }: FollowedNamespace<Sides>): void {
    for (const { metadata } of here.list()) this.look(`${local}/${metadata.name}`);
    for (const { metadata } of there.list()) {
      this.look(`${local}/${this.kind.localName(metadata.name, this.#deps.consumer)}`);
    }
  }

  async #reconcile(key: string, signal: AbortSignal): Promise<Outcome> {
    const { namespace = '', name } = refOfKey(key);
    const sides = this.#namespaces.of(namespace);
    if (!sides) {
      this.#dedupe.forget(key);
      return settled;
    }
    if (!sides.isSynced()) return waiting(`the first list of namespace ${sides.remote}`, unknownYetMs);
    if (this.#rules.isInformed?.(namespace) === false) return again(100);
    const local = sides.here.get({ namespace, name });
    const at = { namespace: sides.remote, name: this.kind.remoteName(name, this.#deps.consumer) };
    const desired = this.#desired(local, at);
    if (!local) this.#dedupe.forget(key);
    let remote = sides.there.get(at);
    let action = decide({ desired, remote }, this.kind, this.#deps);
    if (action.do === 'create') {
      // The cache may lag behind what we made a moment ago; and what is not ours must not be touched.
      const found = await this.#deps.peer.api.get(this.kind.remote, at, signal);
      remote = found && (isOurs(found, this.#deps) ? this.kind.prune(pruneMetadata(found)) : foreignOwner(found));
      action = decide({ desired, remote }, this.kind, this.#deps);
    }
    const subject: Subject = { key, kind: this.kind, local, remote, at };
    try {
      const whole = (object: KubeObject) =>
        wholeCopy(object, subject, this.#deps, (one) => this.#desired(one, at), signal);
      return await applyAction(action, subject, { ...this.#deps, dedupe: this.#dedupe, whole }, signal);
    } catch (error) {
      return this.#refused(error, subject);
    }
  }

  #desired(local: KubeObject | undefined, at: { readonly namespace: string; readonly name: string }): DesiredCopy {
    const { kind } = this;
    if (!local || kind.isExcluded(local, this.#deps.consumer)) return { kind: 'none' };
    if (!this.#rules.allows(local)) return { kind: 'disabled' };
    const copy = kind.copy(local, this.#deps);
    if ('refused' in copy) return { kind: 'refused', why: copy.refused };
    if ('awaits' in copy) return { kind: 'awaits', why: copy.awaits };
    const { group, version, kind: name } = kind.remote;
    const type = { apiVersion: group === '' ? version : `${group}/${version}`, kind: name };
    return { kind: 'copy', copy: buildCopy(type, at, local, copy, this.#deps.shape, this.#deps) };
  }

  /** The provider's own words; missing rights or a missing namespace may only mean that it is not ready yet. */
  #refused(error: unknown, { key, local, at }: Subject): Outcome {
    const code = codeOf(error);
    if (code === 'kube_conflict') return again(50);
    if (code !== 'kube_invalid' && code !== 'kube_forbidden' && code !== 'kube_not_found') throw error;
    const attempt = this.#dedupe.failed(key);
    const delayMs = refusedMs(attempt);
    if (code !== 'kube_invalid' && attempt < 3) return again(delayMs);
    const why = messageOf(error);
    const message = `cluster ${this.#deps.provider} refused it in namespace ${at.namespace}: ${why}`;
    if (local) this.#dedupe.emit(key, local, 'Warning', 'FailedReflection', message);
    return waiting(message, delayMs);
  }
}
