/** What the library tells of its work. Implementations count; they never throw. */
import type { Outcome } from '#shared/domain/outcome.ts';

export interface ControllerMetrics {
  reconciled(controller: string, outcome: Outcome['kind'] | 'error', seconds: number, key: string): void;
  queued(controller: string, depth: number): void;
}

export interface ClientMetrics {
  /** `status`: of the answer; 0: none came. Every attempt counts. */
  requested(verb: string, status: number): void;
  /** Follows the age of a watch until the returned function is called. */
  watching(kind: string, ageMs: () => number): () => void;
}
