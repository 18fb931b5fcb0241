/** Knows whether the API server of one provider answers, and which version it has. */

import type { KubeApi } from '#kube/model/types.ts';
import { abortScope, type LinkedAbort } from '#shared/async/abort-scope.ts';
import { watchdog } from '#shared/async/idle-timeout.ts';
import { messageOf } from '#shared/errors/message-of.ts';
import type { Clock } from '#shared/ports/clock.ts';

export interface ProviderHealthDeps {
  readonly clock: Clock;
  /** The connection of the moment; undefined while there is none. */
  readonly api: () => KubeApi | undefined;
  /** Called after each poll; `changed` when the answer differs from the one before; `outageMs` when an outage has just ended. */
  readonly onLook: (changed: boolean, outageMs: number) => void;
  /** True while a waiter needs the next answer, also while the provider answers. */
  readonly isAwaited?: () => boolean;
  readonly intervalMs?: number;
  /** Deadline of a poll: `slow` after one that was answered, but took longer than `usual`. */
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

/** Poll interval after a failure, shorter than usual: the first answered request ends the outage for everything that waits for the provider. */
const impatientMs = 1_000;
const versionEveryMs = 3_600_000;
/** Deadlines of a poll: 3 s to notice silence soon, 10 s for a slow provider, which would never answer in time if each poll were given up early. */
const patienceMs = { usual: 3_000, slow: 10_000 } as const;
const never = Number.NEGATIVE_INFINITY;

export class ProviderHealth {
  readonly #deps: ProviderHealthDeps;
  #health: Health = { answers: false, version: undefined, problem: 'there is no connection to the provider yet' };
  #versionAt = never;
  #wake: LinkedAbort | undefined;
  #lostAt: number | undefined;
  #slow = false;
  /** When the look began that says so. */
  #pacedAt = never;
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
      const wake = abortScope(signal);
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
    const api = this.#deps.api();
    const { version } = this.#health;
    if (!api) return { answers: false, version, problem: 'there is no connection to the provider yet' };
    const stale = version === undefined || this.#deps.clock.now() - this.#versionAt >= versionEveryMs;
    const enough = abortScope(signal);
    try {
      const seen = await Promise.race([this.#ask(api, stale, signal), this.#patience(enough.signal)]);
      if (!seen.answers) this.#versionAt = never;
      else if (stale) this.#versionAt = this.#deps.clock.now();
      return seen;
    } finally {
      enough.abort();
      enough.unlink();
    }
  }

  /** Goes on after the deadline: a late answer tells a slow provider from one that is gone. */
  async #ask(api: KubeApi, stale: boolean, signal: AbortSignal): Promise<Health> {
    const { clock, timeoutMs = patienceMs } = this.#deps;
    const { version } = this.#health;
    const beganAt = clock.now();
    const deadline = abortScope(signal);
    const guard = watchdog(clock, { idleMs: timeoutMs.slow }, (ms) => deadline.abort(new Error(noAnswer(ms))));
    try {
      const text = await api.getPath(stale ? '/version' : '/livez', deadline.signal);
      if (beganAt >= this.#pacedAt) this.#slow = clock.now() - beganAt >= timeoutMs.usual;
      this.#pacedAt = Math.max(this.#pacedAt, beganAt);
      if (!stale) return { answers: true, version, problem: undefined };
      return { answers: true, version: (JSON.parse(text) as { gitVersion?: string }).gitVersion, problem: undefined };
    } catch (error) {
      return { answers: false, version, problem: messageOf(error) };
    } finally {
      guard.stop();
      deadline.unlink();
    }
  }

  /** Resolves when a look has waited long enough, or need not wait. */
  async #patience(signal: AbortSignal): Promise<Health> {
    const { clock, timeoutMs = patienceMs } = this.#deps;
    const { version } = this.#health;
    const passes = (ms: number): Promise<boolean> =>
      clock.sleep(ms, signal).then(
        () => true,
        () => false,
      );
    const silent = (ms: number): Health => ({ answers: false, version, problem: noAnswer(ms) });
    if (!(await passes(timeoutMs.usual)) || !this.#slow) return silent(timeoutMs.usual);
    if (await passes(timeoutMs.slow - timeoutMs.usual)) this.#slow = false;
    return silent(timeoutMs.slow);
  }
}

const noAnswer = (withinMs: number): string => `no answer within ${withinMs / 1000} s`;
