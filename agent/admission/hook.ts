/** What an admission hook is; each room registers its own. */
import type { Cluster } from '#kube/model/types.ts';
import type { Clock } from '#shared/ports/clock.ts';
import type { Review, Verdict } from './review.ts';

export type Hook = (review: Review, signal: AbortSignal) => Promise<Verdict> | Verdict;

export interface HookDeps {
  readonly cluster: Cluster;
  readonly clusterId: string;
  readonly clock: Clock;
  readonly systemNamespace?: string;
}

export interface Hooks {
  readonly routes: ReadonlyMap<string, Hook>;
  /** Resolves when the caches know the cluster: before, answers could refuse what is right. */
  synced(signal?: AbortSignal): Promise<void>;
}
