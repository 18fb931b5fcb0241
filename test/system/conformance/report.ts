/** What Kubernetes' own suite says of its specs, and what that means together with the reasons. Pure. */

export type State = 'passed' | 'failed' | 'not applicable';

/** A spec and how it ended. */
export interface Outcome {
  /** As ginkgo prints it. */
  readonly spec: string;
  readonly state: State;
  readonly seconds: number;
  /** Of a failure, or why the suite skipped it. */
  readonly message: string;
}

interface GinkgoSpec {
  readonly ContainerHierarchyTexts: readonly string[] | null;
  readonly LeafNodeType: string;
  readonly LeafNodeText: string;
  readonly State: string;
  /** Nanoseconds. */
  readonly RunTime?: number;
  readonly Failure?: {
    readonly Message?: string;
    readonly Location?: { readonly FileName?: string; readonly LineNumber?: number };
  };
}

/** Of ginkgo's `--json-report`. */
export type GinkgoReport = readonly { readonly SpecReports: readonly GinkgoSpec[] | null }[];

const specsOf = (report: GinkgoReport): readonly GinkgoSpec[] =>
  report.flatMap(({ SpecReports }) => SpecReports ?? []).filter(({ LeafNodeType }) => LeafNodeType === 'It');

/** `[sig-node] Pods should be updated [NodeConformance] [Conformance]`. */
const nameOf = ({ ContainerHierarchyTexts, LeafNodeText }: GinkgoSpec): string =>
  [...(ContainerHierarchyTexts ?? []), LeafNodeText].join(' ').trim();

/** `pods.go:118`. */
function placeOf({ Failure }: GinkgoSpec): string {
  const { FileName, LineNumber } = Failure?.Location ?? {};
  return FileName === undefined ? '' : `${FileName.split('/').at(-1)}:${LineNumber}`;
}

/** Specs that a dry run selected, sorted. */
export const selectedSpecs = (dryRun: GinkgoReport): readonly string[] =>
  specsOf(dryRun)
    .filter(({ State }) => State === 'passed')
    .map(nameOf)
    .sort();

/** Specs that were not selected are left out; those that did not end are failures. */
export function outcomesOf(report: GinkgoReport): readonly Outcome[] {
  return specsOf(report).flatMap((spec): Outcome[] => {
    const message = spec.Failure?.Message ?? '';
    const seconds = Math.round((spec.RunTime ?? 0) / 1e9);
    const outcome = { spec: nameOf(spec), seconds };
    if (spec.State === 'passed') return [{ ...outcome, state: 'passed', message: '' }];
    // A spec that skips itself says why; one that was not selected says nothing.
    if (spec.State === 'pending' || (spec.State === 'skipped' && message === '')) return [];
    if (spec.State === 'skipped') return [{ ...outcome, state: 'not applicable', message }];
    return [{ ...outcome, state: 'failed', message: `${placeOf(spec)}: ${message || spec.State}` }];
  });
}

/** Why the suite ran no spec at all, in its words; undefined when it ran some. */
export const brokenBefore = (report: GinkgoReport): string | undefined =>
  report
    .flatMap(({ SpecReports }) => SpecReports ?? [])
    .find(({ LeafNodeType, State }) => LeafNodeType === 'SynchronizedBeforeSuite' && State !== 'passed')?.Failure
    ?.Message;

/** Why specs cannot pass on a virtual node. */
export interface Reason {
  /** Names of specs, which it matches anywhere. */
  readonly specs: RegExp;
  /** `not applicable`: it is not run, for it asks for what no node of ours is about. `failed`: it runs and fails. */
  readonly state: Exclude<State, 'passed'>;
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
    if (state === 'not applicable') return [];
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
