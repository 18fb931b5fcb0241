/** Knows whether the API server of one provider answers, and which version it has. */
import type { Clock } from '#shared/ports/clock.ts';
import { type LinkedAbort, linkedAbort } from '../kube/linked-abort.ts';
import type { KubeApi } from '../kube/types.ts';

export interface ProviderHealthDeps {
  readonly clock: Clock;
  /** The connection of the moment; undefined while there is none. */
  readonly api: () => KubeApi | undefined;
  /** Called after each look; `changed` when the answer differs from the one before; `outageMs` when an outage has just ended. */
  readonly onLook: (changed: boolean, outageMs: number) => void;
  /** Somebody waits for what the next look shows, also while the provider answers. */
  readonly isAwaited?: () => boolean;
  readonly intervalMs?: number;
  /** How long a look may take: `slow` after one that took longer than `usual`, answered or not. */
  readonly timeoutMs?: { readonly usual: number; readonly slow: number };
}

export interface Health {
  readonly answers: boolean;
  /** `gitVersion`, as last seen. */
  readonly version: string | undefined;
  /** Why it does not answer, for people. */
  readonly problem: string | undefined;
}

/** Times of looks that were answered, by the clock. */
export interface Answered {
  /** When the last of them began; minus infinity before the first. */
  readonly lookedAt: number;
  /** When the first of them began after the last outage; minus infinity before an outage. */
  readonly since: number;
}

/** After a failure it looks sooner: whoever waits for the provider is told by the first request that is answered. */
const impatientMs = 1_000;
const versionEveryMs = 3_600_000;
/** Silence is noticed soon. But whoever is slow, here or there, answers nobody who asks again and again and never waits. */
const patienceMs = { usual: 3_000, slow: 10_000 } as const;
const never = Number.NEGATIVE_INFINITY;

export class ProviderHealth {
  readonly #deps: ProviderHealthDeps;
  #health: Health = { answers: false, version: undefined, problem: 'there is no connection to the provider yet' };
  #versionAt = never;
  #wake: LinkedAbort | undefined;
  #lostAt: number | undefined;
  #slow = false;
  #answered: Answered = { lookedAt: never, since: never };

  constructor(deps: ProviderHealthDeps) {
    this.#deps = deps;
  }

  get current(): Health {
    return this.#health;
  }

  get answered(): Answered {
    return this.#answered;
  }

  /** Looks again at once: the connection was replaced, or something else says that the provider is gone. */
  again(): void {
    this.#versionAt = never;
    this.#wake?.abort();
  }

  async run(signal: AbortSignal): Promise<void> {
    const { clock, intervalMs = 10_000, onLook, isAwaited = () => false } = this.#deps;
    while (!signal.aborted) {
      const wake = linkedAbort(signal);
      this.#wake = wake;
      const before = this.#health;
      const beganAt = clock.now();
      this.#health = await this.#look(signal);
      if (signal.aborted) return;
      const { answers, version } = this.#health;
      if (!answers) this.#lostAt ??= clock.now();
      const outageMs = answers && this.#lostAt !== undefined ? clock.now() - this.#lostAt : 0;
      if (answers) {
        const isBack = this.#lostAt !== undefined && this.#answered.lookedAt !== never;
        this.#answered = { lookedAt: beganAt, since: isBack ? beganAt : this.#answered.since };
        this.#lostAt = undefined;
      }
      onLook(before.answers !== answers || before.version !== version, outageMs);
      const pauseMs = answers && !isAwaited() ? intervalMs : impatientMs;
      await clock.sleep(pauseMs, wake.signal).catch(() => undefined);
      wake.unlink();
    }
  }

  async #look(signal: AbortSignal): Promise<Health> {
    const { clock, api: of, timeoutMs = patienceMs } = this.#deps;
    const api = of();
    const { version } = this.#health;
    if (!api) return { answers: false, version, problem: 'there is no connection to the provider yet' };
    const withinMs = this.#slow ? timeoutMs.slow : timeoutMs.usual;
    const beganAt = clock.now();
    const deadline = linkedAbort(signal);
    const patience = linkedAbort(deadline.signal);
    clock.sleep(withinMs, patience.signal).then(
      () => deadline.abort(new Error(`no answer within ${withinMs / 1000} s`)),
      () => undefined,
    );
    try {
      const stale = version === undefined || clock.now() - this.#versionAt >= versionEveryMs;
      const text = await api.getPath(stale ? '/version' : '/livez', deadline.signal);
      if (!stale) return { answers: true, version, problem: undefined };
      this.#versionAt = clock.now();
      return { answers: true, version: (JSON.parse(text) as { gitVersion?: string }).gitVersion, problem: undefined };
    } catch (error) {
      this.#versionAt = never;
      return { answers: false, version, problem: error instanceof Error ? error.message : String(error) };
    } finally {
      this.#slow = clock.now() - beganAt >= timeoutMs.usual;
      patience.abort();
      deadline.unlink();
    }
  }
}
