/** Copies what the provider says about our objects to where their owner looks. */
import { NamespacedCaches } from '#kube/cache/namespaced-caches.ts';
import type { Cache, Change, Controller } from '#kube/model/types.ts';
import { createController } from '#kube/run/controller.ts';
import { type CoreEvent, coreEvents } from '#shared/domain/core-kinds.ts';
import { type KubeObject, namespaceOfKey, refOfKey } from '#shared/domain/kube-object.ts';
import { label } from '#shared/domain/liqo-keys.ts';
import { type Outcome, settled, waiting } from '#shared/domain/outcome.ts';
import { codeOf } from '#shared/errors/app-error.ts';
import type { ReflectorOptions } from '../engine/options.ts';
import type { ReflectorDeps } from '../engine/reflector.ts';
import { type Concerned, concerned, decideEvent, localEvent, pruneCopy, pruneRemote } from '../kinds/provider-event.ts';
import { isReflected } from '../model/policy.ts';

export interface EventReflectorDeps extends ReflectorDeps {
  /** The object here that an event is about, as far as it is followed. */
  readonly object: (namespace: string, about: Concerned) => KubeObject | undefined;
}

/** The events of one offloaded namespace, here and at the provider. */
interface Sides {
  readonly here: Cache<CoreEvent>;
  readonly there: Cache<CoreEvent>;
}

export class EventReflector {
  readonly #deps: EventReflectorDeps;
  readonly #options: ReflectorOptions;
  readonly #namespaces: NamespacedCaches<Sides>;
  readonly #controller: Controller;

  constructor(options: ReflectorOptions, deps: EventReflectorDeps, signal: AbortSignal) {
    this.#deps = deps;
    this.#options = options;
    const { consumer, provider, log, scopes, peer } = deps;
    const labelSelector = `${label.origin}=${consumer},${label.destination}=${provider}`;
    const changed = (namespace: string, { before, after }: Change<CoreEvent>): void => {
      const name = (after ?? before)?.metadata.name;
      if (name !== undefined) this.#controller.enqueue(`${namespace}/${name}`);
    };
    this.#namespaces = new NamespacedCaches<Sides>(
      {
        open: (local, remote, until) => ({
          here: scopes.use('event', coreEvents, { namespace: local, labelSelector, transform: pruneCopy }, until),
          there: peer.caches.scoped(coreEvents, { namespace: remote, transform: pruneRemote }, until),
        }),
        onChange: { here: changed, there: changed },
        onSynced: ({ local, here, there }) => {
          for (const { metadata } of [...here.list(), ...there.list()])
            this.#controller.enqueue(`${local}/${metadata.name}`);
        },
        log,
      },
      signal,
    );
    this.#controller = createController(
      {
        name: 'reflect-event',
        watches: [],
        workers: options.workers,
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

  run(signal: AbortSignal): Promise<void> {
    return this.#controller.run(signal);
  }

  async #reconcile(key: string, signal: AbortSignal): Promise<Outcome> {
    const { namespace = '', name } = refOfKey(key);
    const sides = this.#namespaces.of(namespace);
    if (!sides) return settled;
    if (!sides.isSynced()) return waiting(`the first list of namespace ${sides.remote}`, 60_000);
    const { api } = this.#deps.local;
    const copy = sides.here.get({ namespace, name });
    const remote = sides.there.get({ namespace: sides.remote, name });
    const about = remote && isReflected(remote, this.#options.type) ? concerned(remote) : undefined;
    const object = about && this.#deps.object(namespace, about);
    // The object may be gone before its last words come: a copy that was made stays as long as the original.
    if (remote && !object) return settled;
    const wanted = remote && object ? localEvent(remote, object, this.#deps) : undefined;
    const action = decideEvent(copy, wanted, this.#deps);
    try {
      if (action.do === 'create') await api.create(coreEvents, action.event, { answer: 'metadata' }, signal);
      if (action.do === 'patch')
        await api.mergePatch(coreEvents, { namespace, name }, action.patch, { answer: 'metadata' }, signal);
      if (action.do === 'delete') await api.delete(coreEvents, { namespace, name }, { uid: action.uid }, signal);
    } catch (error) {
      const code = codeOf(error) ?? '';
      // The name is taken, the object is gone, or it is not acceptable here: an event is not worth a retry.
      if (!['kube_already_exists', 'kube_not_found', 'kube_invalid', 'kube_forbidden'].includes(code)) throw error;
      this.#deps.log.debug('an event was not copied', { key, code });
    }
    return settled;
  }
}
