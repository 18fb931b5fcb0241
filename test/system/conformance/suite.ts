/** Runs Kubernetes' own suite as a program. */
import { existsSync, mkdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import {
  brokenBefore,
  type GinkgoReport,
  type Outcome,
  outcomesOf,
  selectedSpecs,
} from '#test/harness/ginkgo-report.ts';
import { run } from '#test/harness/program.ts';
import { buildConformancebox, buildGinkgo } from '#test/testbed/build.ts';
import { registries } from './images.ts';
import { focusOn } from './report.ts';

/** How many nodes of the suite's cluster are virtual. */
export type Share = 'all' | 'half';

/** Specs by group of the suite. Those that need features which are off by default, or that break nodes, are in none. */
export const groups = {
  node: { labels: 'sig-node && (Conformance || NodeConformance)', virtual: 'all' },
  volumes: { labels: 'sig-storage && NodeConformance', virtual: 'all' },
  network: { labels: 'sig-network && Conformance', virtual: 'half' },
  apps: { labels: 'sig-apps && Conformance', virtual: 'half' },
} as const satisfies Record<string, { readonly labels: string; readonly virtual: Share }>;
export type Group = keyof typeof groups;
const elsewhere = '!Disruptive && !Flaky';

/** Which specs: an expression over their labels, and one that their names match. */
export interface Selection {
  readonly labels: string;
  readonly names?: string;
}
export const selectionOf = (group: Group): Selection => ({ labels: `(${groups[group].labels}) && ${elsewhere}` });
/** The suites for the driver that a file describes. */
export const driverSuites: Selection = { labels: `${elsewhere} && !Serial`, names: 'External Storage' };

export interface SuiteTarget {
  readonly kubeconfigPath: string;
  readonly kubectlPath: string;
}

export interface Suite {
  specsOf(selection: Selection): Promise<readonly string[]>;
  /** Runs these and no others, some at a time; those that have not ended by the deadline count as failed. */
  run(
    specs: readonly string[],
    options: { readonly processes: number; readonly seconds: number },
  ): Promise<readonly Outcome[]>;
}

export async function openSuite(
  dir: string,
  target: SuiteTarget | undefined,
  log: (line: string) => void,
  /** File of the storage driver that gets suites of its own, if any. */
  driver?: string,
): Promise<Suite> {
  const [program, ginkgo] = [await buildConformancebox({ log }), await buildGinkgo({ log })];
  mkdirSync(dir, { recursive: true });
  // Ginkgo knows a built suite by this ending.
  const binary = path.join(dir, 'e2e.test');
  rmSync(binary, { force: true });
  symlinkSync(program, binary);
  const registryFile = path.join(dir, 'registries.yaml');
  writeFileSync(registryFile, JSON.stringify(registries));
  const reportFile = path.join(dir, 'report.json');
  const env = { KUBE_TEST_REPO_LIST: registryFile, KUBECONFIG: undefined };

  async function start(flags: readonly string[], own: readonly string[], timeoutMs: number): Promise<GinkgoReport> {
    rmSync(reportFile, { force: true });
    const args = [
      ...flags,
      '--no-color',
      '--silence-skips',
      '--json-report=report.json',
      `--output-dir=${dir}`,
      binary,
      '--',
      ...(driver === undefined ? [] : [`--storage.testdriver=${driver}`]),
      ...own,
    ];
    const ended = await run(ginkgo, args, { env, timeoutMs, cwd: dir });
    writeFileSync(path.join(dir, 'output.txt'), `${ended.stdout}${ended.stderr}`);
    if (!existsSync(reportFile))
      throw new Error(
        `the suite ended with ${ended.code} and no report:\n${`${ended.stdout}${ended.stderr}`.slice(-4_000)}`,
      );
    const report = JSON.parse(readFileSync(reportFile, 'utf8')) as GinkgoReport;
    const broken = brokenBefore(report);
    if (broken !== undefined) throw new Error(`no spec of the suite ran: ${broken}`);
    return report;
  }

  return {
    async specsOf({ labels, names }) {
      const flags = ['--dry-run', `--label-filter=${labels}`, ...(names === undefined ? [] : [`--focus=${names}`])];
      return selectedSpecs(await start(flags, [], 120_000));
    },
    async run(specs, { processes, seconds }) {
      if (target === undefined) throw new TypeError('there is no cluster to run specs on');
      const flags = [
        `--procs=${processes}`,
        `--timeout=${seconds}s`,
        '--grace-period=20s',
        `--focus=${focusOn(specs)}`,
      ];
      const own = [
        `--kubeconfig=${target.kubeconfigPath}`,
        `--kubectl-path=${target.kubectlPath}`,
        '--provider=skeleton',
        '--dump-logs-on-failure=false',
      ];
      return outcomesOf(await start(flags, own, (seconds + 90) * 1_000));
    },
  };
}
