/** A cache of ConfigMaps over an API server that is played: its rules, and what can go wrong with it. */
import { expect } from 'vitest';
import { configMaps } from '#shared/domain/core-kinds.ts';
import type { ConfigMap } from '#shared/domain/kube-object.ts';
import { AppError } from '#shared/errors/app-error.ts';
import { ManualClock } from '#shared/ports/clock.ts';
import { silentLog } from '#shared/ports/log.ts';
import { OutageTracker } from '../../http/outage-tracker.ts';
import { Informer } from '../informer.ts';
import type { ListWatch, WatchEvent } from '../list-watch.ts';

export const settle = () => new Promise((resolve) => setImmediate(resolve));

/**
 * An API server's memory of one kind: objects, a history of events, and the point up to which it was compacted. Its rules are those that
 * `informer.real.test.ts` shows the real server to have.
 */
export class History implements ListWatch<ConfigMap> {
  readonly outages = new OutageTracker();
  readonly objects = new Map<string, ConfigMap>();
  #events: { readonly version: number; readonly event: WatchEvent<ConfigMap> }[] = [];
  /** As `#events`, but nothing is ever compacted away. */
  readonly #log: { readonly version: number; readonly event: WatchEvent<ConfigMap> }[] = [];
  #version = 1;
  #compacted = 0;
  #serial = 0;
  #watchers = new Set<{
    at: number;
    readonly send: (event: WatchEvent<ConfigMap>) => void;
    readonly end: (error?: AppError) => void;
  }>();
  /** How many of the next requests fail before they begin. */
  failing = 0;
  lists = 0;
  /** Called when page `n` of a list was read. */
  onPage: () => void = () => undefined;

  put(name: string, color: string): void {
    const known = this.objects.get(name);
    const uid = known?.metadata.uid ?? `uid-${++this.#serial}`;
    const version = ++this.#version;
    const metadata = { namespace: 'n', name, uid, resourceVersion: String(version), managedFields: ['noise'] };
    const object: ConfigMap = { apiVersion: 'v1', kind: 'ConfigMap', metadata, data: { color } };
    this.objects.set(name, object);
    this.#record(version, { type: known === undefined ? 'ADDED' : 'MODIFIED', object });
  }

  delete(name: string): void {
    const known = this.objects.get(name);
    if (known === undefined) return;
    const version = ++this.#version;
    this.objects.delete(name);
    const metadata = { ...known.metadata, resourceVersion: String(version) };
    this.#record(version, { type: 'DELETED', object: { ...known, metadata } });
  }

  compact(): void {
    this.#compacted = this.#version;
    this.#events = [];
  }

  bookmark(): void {
    const metadata = { name: '', resourceVersion: String(this.#version) };
    for (const watcher of this.#watchers) {
      watcher.at = this.#version;
      watcher.send({ type: 'BOOKMARK', object: { apiVersion: 'v1', kind: 'ConfigMap', metadata } });
    }
  }

  breakWatches(error?: AppError): void {
    for (const watcher of [...this.#watchers]) watcher.end(error);
  }

  async page(next: string | undefined, signal: AbortSignal) {
    await settle();
    signal.throwIfAborted();
    this.#mayFail();
    if (next === undefined) this.lists++;
    const [version, from] = next === undefined ? [this.#version, 0] : (JSON.parse(next) as [number, number]);
    if (version < this.#compacted) throw new AppError('kube_gone', 'continue token expired');
    const snapshot = [...this.#at(version).values()].sort((a, b) => a.metadata.name.localeCompare(b.metadata.name));
    const items = structuredClone(snapshot.slice(from, from + 2)).map(
      ({ metadata, data }) => ({ metadata, data }) as ConfigMap,
    );
    this.onPage();
    const more = from + 2 < snapshot.length;
    return {
      bytes: 0,
      items,
      resourceVersion: String(version),
      next: more ? JSON.stringify([version, from + 2]) : undefined,
    };
  }

  async watch(
    resourceVersion: string,
    _limits: unknown,
    handlers: { accepted?(): void; event(event: WatchEvent<ConfigMap>): void },
    signal: AbortSignal,
  ): Promise<void> {
    await settle();
    signal.throwIfAborted();
    this.#mayFail();
    const from = Number(resourceVersion);
    if (from < this.#compacted) throw new AppError('kube_gone', 'too old resource version');
    handlers.accepted?.();
    await new Promise<void>((resolve, reject) => {
      const watcher = {
        at: from,
        send: (event: WatchEvent<ConfigMap>) => handlers.event(structuredClone(event)),
        end: (error?: AppError) => {
          this.#watchers.delete(watcher);
          if (error === undefined) resolve();
          else reject(error);
        },
      };
      this.#watchers.add(watcher);
      signal.addEventListener('abort', () => watcher.end(new AppError('kube_unreachable', 'aborted')), { once: true });
      for (const { version, event } of this.#events) if (version > from) watcher.send(event);
    });
  }

  #mayFail(): void {
    if (this.failing === 0) return;
    this.failing--;
    throw new AppError('kube_unreachable', 'connection refused');
  }

  /** The objects as of `version`: what is there now, with everything later undone. */
  #at(version: number): Map<string, ConfigMap> {
    if (version === this.#version) return this.objects;
    const past = new Map<string, ConfigMap>();
    for (const { version: at, event } of this.#log) {
      if (at > version || event.type === 'ERROR') break;
      if (event.type === 'DELETED') past.delete(event.object.metadata.name);
      else past.set(event.object.metadata.name, event.object);
    }
    return past;
  }

  #record(version: number, event: WatchEvent<ConfigMap>): void {
    this.#events.push({ version, event });
    this.#log.push({ version, event });
    for (const watcher of this.#watchers) watcher.send(event);
  }
}

export function open(history: History, transform?: (object: ConfigMap) => ConfigMap) {
  const clock = new ManualClock();
  const stop = new AbortController();
  const indexes = { byColor: (object: ConfigMap) => [object.data?.color ?? ''] };
  const deps = { clock, log: silentLog, random: () => 0.5 };
  const cache = new Informer<ConfigMap>(configMaps, history, transform ? { indexes, transform } : { indexes }, deps);
  /** What a subscriber believes, having only heard changes. */
  const believed = new Map<string, ConfigMap>();
  cache.subscribe(({ before, after }) => {
    const name = (after ?? before)?.metadata.name ?? '';
    expect(believed.get(name)?.metadata.uid).toBe(before?.metadata.uid);
    if (before && after) expect(after.metadata.uid).toBe(before.metadata.uid);
    if (after) believed.set(name, after);
    else believed.delete(name);
  });
  const running = cache.run(stop.signal);
  /** Lets it recover: sleeps end at once until nothing moves any more. */
  const rest = async (): Promise<void> => {
    for (let i = 0; i < 30; i++) {
      await settle();
      clock.advance(20_000);
    }
  };
  const close = async (): Promise<void> => {
    stop.abort();
    await running;
  };
  return { cache, believed, clock, rest, close };
}
