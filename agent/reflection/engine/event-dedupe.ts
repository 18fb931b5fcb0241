/** What was said about each object last, so that a lasting trouble is one event and not one for each look; and how often it failed in a row. */
import type { EventRecorder } from '#kube/model/types.ts';
import type { KubeObject } from '#shared/domain/kube-object.ts';

export class EventDedupe {
  readonly #events: EventRecorder;
  readonly #last = new Map<string, string>();
  readonly #failures = new Map<string, number>();

  constructor(events: EventRecorder) {
    this.#events = events;
  }

  emit(key: string, about: KubeObject, type: 'Normal' | 'Warning', reason: string, message: string): void {
    const text = `${about.metadata.uid} ${reason} ${message}`;
    if (this.#last.get(key) === text) return;
    this.#last.set(key, text);
    this.#events.emit(about, type, reason, message);
  }

  /** How often in a row, this time included. */
  failed(key: string): number {
    const count = (this.#failures.get(key) ?? 0) + 1;
    this.#failures.set(key, count);
    return count;
  }

  succeeded(key: string): void {
    this.#failures.delete(key);
  }

  forget(key: string): void {
    this.#last.delete(key);
    this.#failures.delete(key);
  }
}
