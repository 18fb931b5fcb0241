/** Which of many equal cases a run takes: tests that differ in a moment, an order or a seed alone prove one thing many times. */

/** The files that call what is below. vitest.config.ts puts them into the project `long` too, where they take all their cases. */
export const filesWithCases = [
  'agent/api-proxy/front-door-requests.test.ts',
  'agent/api-proxy/hostile-callers.test.ts',
  'agent/broker/trust/lies.test.ts',
  'agent/network/gateway/templates/hostile-templates.test.ts',
  'agent/network/ranges/ranges-interrupted.real.test.ts',
  'agent/offloading/consumer/kubelet-api/hostile-paths.test.ts',
  'agent/offloading/consumer/virtual-node/resilience.real.test.ts',
  'agent/offloading/offloading-interrupted.real.test.ts',
  'agent/offloading/provider/snapshots/snapshots-interrupted.real.test.ts',
  'agent/offloading/provider/storage/retention-interrupted.real.test.ts',
  'agent/pki/hostile-requests.test.ts',
  'agent/pki/sealed-token.test.ts',
  'agent/storage/interrupted.real.test.ts',
  'agent/storage/snapshots/interrupted.real.test.ts',
  'control/cross-tenant-isolation.test.ts',
  'control/isolation.test.ts',
  'control/peerings/cross-tenant-histories.test.ts',
  'control/peerings/histories.test.ts',
  'control/peerings/state-machine/generated-reports.test.ts',
  'functions/api/isolation.test.ts',
  'scripts/agent-kit/kit.real.test.ts',
  'scripts/gen/chart/templates.real.test.ts',
  'test/contract/crds.real.test.ts',
  'test/orderings/hostile-answers.test.ts',
  'test/orderings/hostile-bytes.test.ts',
  'test/orderings/hostile-reviews.test.ts',
  'test/orderings/storage/adoptions.test.ts',
  'test/orderings/storage/copies.test.ts',
  'test/orderings/storage/histories.test.ts',
  'test/orderings/storage/kept-mutations.test.ts',
  'test/orderings/storage/mutations.test.ts',
  'test/orderings/storage/snapshots.test.ts',
  'test/system/declarative/gitops.real.test.ts',
  'test/system/leaving/leaving.real.test.ts',
  'test/system/peering/interrupted.real.test.ts',
] as const;

/** What the project `long` has in its environment. */
export const allCases = { ISTHMUS_ALL_CASES: '1' } as const;

const takesAll = process.env.ISTHMUS_ALL_CASES === allCases.ISTHMUS_ALL_CASES;

/** `all` in `npm run test:long`, the `kept` ones in `npm test`. */
export const casesOf = <T>(all: readonly T[], kept: readonly T[]): readonly T[] => (takesAll ? all : kept);

/** The same for generated cases, by their number. */
export const countOf = (all: number, kept: number): number => (takesAll ? all : kept);

/**
 * Parameters of fast-check: `all` cases from a new seed in `npm run test:long`, `kept` ones in `npm test`, from one seed, so that what a few of them happen to
 * reach is the same in every run.
 */
export const drawn = (
  all: number,
  kept: { readonly numRuns: number; readonly seed: number },
): typeof kept | { readonly numRuns: number } => (takesAll ? { numRuns: all } : kept);
