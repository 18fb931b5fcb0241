/** What a suite that is written with ginkgo says of its specs. Pure. */

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

/** `[sig-node] Pods should be updated [NodeConformance] [Conformance]`. As ginkgo does it, which leaves out containers without a text. */
const nameOf = ({ ContainerHierarchyTexts, LeafNodeText }: GinkgoSpec): string =>
  [...(ContainerHierarchyTexts ?? []), LeafNodeText]
    .filter((text) => text !== '')
    .join(' ')
    .trim();

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

/** Specs that the suite never runs, wherever it runs. */
export const pendingSpecs = (report: GinkgoReport): readonly string[] =>
  specsOf(report)
    .filter(({ State }) => State === 'pending')
    .map(nameOf)
    .sort();

/** Why the suite ran no spec at all, in its words; undefined when it ran some. */
export const brokenBefore = (report: GinkgoReport): string | undefined =>
  report
    .flatMap(({ SpecReports }) => SpecReports ?? [])
    .find(({ LeafNodeType, State }) => LeafNodeType === 'SynchronizedBeforeSuite' && State !== 'passed')?.Failure
    ?.Message;
