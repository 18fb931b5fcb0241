/** What `npm test` and `npm run test:long` run, in the order in which a failure is cheapest. */

type Project = 'fast' | 'thorough' | 'real' | 'network' | 'system' | 'long' | 'examples';

export type Suite =
  /** One passed or failed check, by the exit code of a program of Node. */
  | { readonly name: string; readonly kind: 'check'; readonly argv: readonly string[]; readonly onClusters?: true }
  /** Single tests, by vitest's own report. */
  | {
      readonly name: string;
      readonly kind: 'tests';
      readonly node: 'this' | '24';
      readonly projects: readonly Project[];
      /** Folders or files; all of the projects when empty. */
      readonly paths: readonly string[];
      /** Whether a file that failed is run once more, alone, to tell a flaky one from a broken one. */
      readonly again: boolean;
    };

/** Whether it needs Debian packages and built components; the others need nothing but Node. */
export const needsMachine = (suite: Suite): boolean =>
  suite.kind === 'tests' ? !areInMemory(suite.projects) : suite.onClusters === true;

/** Whether they need nothing but Node. */
export const areInMemory = (projects: readonly Project[]): boolean =>
  projects.every((project) => project === 'fast' || project === 'thorough');

/** One row after the other; the suites of a row run at the same time: the first in the foreground, the others on the processor time that it leaves. */
export type Rows = readonly (readonly [Suite, ...Suite[]])[];

const check = (name: string, ...argv: string[]): Suite => ({ name, kind: 'check', argv });
const program = (name: string, entry: string, ...args: string[]): Suite =>
  check(name, 'scripts/run.mjs', entry, ...args);
const onClusters = (suite: Suite): Suite => ({ ...suite, ...(suite.kind === 'check' ? { onClusters: true } : {}) });
const tests = (name: string, projects: Project | readonly Project[], ...paths: string[]): Suite => ({
  name,
  kind: 'tests',
  node: 'this',
  projects: [projects].flat(),
  paths,
  again: !areInMemory([projects].flat()),
});
const onNode24 = (suite: Suite): Suite => ({
  ...suite,
  ...(suite.kind === 'tests' ? { node: '24', again: true } : {}),
});

/** What runs where users run it; building, deploying and testing need Node 20 only. */
const onBoth = ['agent/', 'shared/', 'control/', 'functions/', 'cli/'];

export const lists = {
  test: [
    // Tests in memory leave a tenth of two processors idle; the checks, one after the other, fit into that.
    [
      tests('unit and contract tests', ['fast', 'thorough']),
      check('types', 'node_modules/typescript/bin/tsc', '-b'),
      check('lint', 'node_modules/@biomejs/biome/bin/biome', 'ci', '.'),
      check('nothing is unused', 'node_modules/knip/bin/knip.js', '--no-progress', '--treat-config-hints-as-errors'),
      program('generated files are current', 'scripts/gen/main.ts', '--check'),
    ],
    // One of the others at a time runs beside the first: a file with whole clusters, or with networks, beside three files of components.
    [
      tests('tests on real components', 'real'),
      tests('tests on whole clusters', 'system'),
      tests('tests on networks of namespaces', 'network'),
    ],
    // By the audit logs of the API servers of the row above.
    [program('no right is unused', 'scripts/rights/main.ts')],
  ],
  long: [
    [
      onNode24(tests('unit tests on Node 24', ['fast', 'thorough'], ...onBoth)),
      onNode24(tests('API server tests on Node 24', 'real', 'kube/', 'test/contract/crds')),
    ],
    [tests('second copies and long waits', 'long')],
    [tests('the pages of examples/', 'examples')],
    [onClusters(program('20 mixed rounds of peering', 'test/system/rounds/main.ts', '--rounds', '20'))],
    [
      onClusters(
        program('a provider cut off for 300 s', 'test/system/cuts/main.ts', '--seconds', '300', '--within', '60'),
      ),
    ],
    // In `npm test`, infra/*.test.ts look at what the stacks hold.
    [program('cloud templates', 'scripts/templates/main.ts')],
    [program('10,000 orderings', 'scripts/orderings/main.ts')],
  ],
} as const satisfies Record<string, Rows>;

export type ListName = keyof typeof lists;

/** Rows with the suites whose names hold one of the words; all without words. Rejects words that fit nothing, and names the suites. */
export function chosen(rows: Rows, words: readonly string[]): Rows {
  const names = rows.flat().map(({ name }) => name);
  const stray = words.find((word) => !names.some((name) => name.includes(word)));
  if (stray !== undefined)
    throw new Error(`no suite has ${JSON.stringify(stray)} in its name; there are: ${names.join(', ')}`);
  return rows.flatMap((row) => {
    const [first, ...others] = row.filter(
      ({ name }) => words.length === 0 || words.some((word) => name.includes(word)),
    );
    return first === undefined ? [] : [[first, ...others] as const];
  });
}
