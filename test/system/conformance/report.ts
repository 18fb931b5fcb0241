/** What outcomes of Kubernetes' own suite mean together with the reasons. Pure. */
import type { Outcome, State } from '#test/harness/ginkgo-report.ts';

/** Why specs cannot pass on a virtual node. */
export interface Reason {
  /** Names of specs, which it matches anywhere. */
  readonly specs: RegExp;
  /**
   * `not applicable`: it is not run, for it asks for what no node of ours is about. `failed`: it runs and fails. `placement`: it runs, and fails when the
   * scheduler sends certain pods of it to the provider.
   */
  readonly state: Exclude<State, 'passed'> | 'placement';
  readonly reason: string;
}

export const reasonFor = (reasons: readonly Reason[], spec: string): Reason | undefined =>
  reasons.find(({ specs }) => specs.test(spec));

/** Reasons that are not true any more, in words. `all`: every spec of the suite, also those that did not run. */
export function staleReasons(
  reasons: readonly Reason[],
  all: readonly string[],
  outcomes: readonly Outcome[],
): readonly string[] {
  return reasons.flatMap(({ specs, state }) => {
    const name = `the reason for ${String(specs)}`;
    const matched = all.filter((spec) => specs.test(spec));
    if (matched.length === 0) return [`${name} matches no spec of the suite: remove it`];
    if (state !== 'failed') return [];
    return outcomes
      .filter((outcome) => outcome.state === 'passed' && specs.test(outcome.spec))
      .map(({ spec }) => `${name} says that it fails, and it passed: ${spec}`);
  });
}

interface Run {
  readonly reasons: readonly Reason[];
  /** Every spec of the suite. */
  readonly all: readonly string[];
  readonly outcomes: readonly Outcome[];
  /** What was given to the suite. */
  readonly given: readonly string[];
  /** What was not, for want of time. */
  readonly left: readonly string[];
}

/** Why a run shows less than it should, besides failures that have no reason. */
export function shortcomings({ reasons, all, outcomes, given, left }: Run): readonly string[] {
  const ran = new Set(outcomes.map(({ spec }) => spec));
  return [
    ...given.filter((spec) => !ran.has(spec)).map((spec) => `the suite says nothing of ${spec}`),
    ...(left.length === 0 ? [] : [`${left.length} specs were left out for want of time: --resume goes on with them`]),
    ...staleReasons(reasons, all, outcomes),
  ];
}

/** Specs in groups that take about the same number each. */
export function inPieces(specs: readonly string[], most: number): readonly (readonly string[])[] {
  const pieces = Math.ceil(specs.length / most);
  return Array.from({ length: pieces }, (_, at) => specs.filter((_spec, index) => index % pieces === at));
}

/** A regular expression of Go that matches exactly these specs; ginkgo looks for it in the name of the suite, a space and that of the spec. */
export const focusOn = (specs: readonly string[]): string =>
  `^Kubernetes e2e suite (${specs.map((spec) => spec.replaceAll(/[.*+?^${}()|[\]\\]/g, String.raw`\$&`)).join('|')})$`;
