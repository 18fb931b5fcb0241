/** The tables of docs/conformance.md. Pure. */
import type { Outcome, State } from '#test/harness/ginkgo-report.ts';
import { type Reason, reasonFor } from './report.ts';

export type TableName = 'all nodes virtual' | 'half of the nodes virtual' | 'storage here' | 'storage provider';
const marksOf = (table: TableName): readonly [string, string] => [`<!-- ${table}: begin -->`, `<!-- ${table}: end -->`];

/** A line of the table. */
export interface Row {
  readonly spec: string;
  readonly state: State;
  /** Empty for what passed wherever its pods are. */
  readonly reason: string;
}

/** `unexplained`: of a failure for which there is no reason. */
export const unexplained = 'not explained yet';

const oneLine = (text: string): string => text.replaceAll(/\s+/g, ' ').trim();

/** Of a row with this outcome; undefined without one. */
function knownReason(reasons: readonly Reason[], spec: string, state: State): Reason | undefined {
  const known = reasonFor(reasons, spec);
  return state === 'passed' && known?.state !== 'placement' ? undefined : known;
}

export function rowOf(outcome: Outcome, reasons: readonly Reason[]): Row {
  const { spec, state, message } = outcome;
  const known = knownReason(reasons, spec, state);
  if (state === 'passed') return { spec, state, reason: known?.reason ?? '' };
  if (state === 'not applicable') return { spec, state, reason: known?.reason ?? `the suite: ${oneLine(message)}` };
  return { spec, state, reason: known?.reason ?? unexplained };
}

const cell = (text: string): string => text.replaceAll('|', '\\|').replaceAll('<', '&lt;');

/** `[sig-node] Pods should …` becomes `sig-node`; of suites for a driver `[Testpattern: Dynamic PV (default fs)] volumes should …` becomes `volumes`. */
const groupOf = (spec: string): string =>
  (/\[Testpattern: [^\]]+\](?: \[[^\]]+\])* ([\w-]+)/.exec(spec) ?? /^\[([^\]]+)\]/.exec(spec))?.[1] ?? 'others';

/** Specs that are not run, by the reason: too many of them for a row each. */
function unasked(table: TableName, all: readonly string[], reasons: readonly Reason[]): readonly Row[] {
  if (!table.startsWith('storage ')) return [];
  return all.flatMap((spec): Row[] => {
    const found = reasonFor(reasons, spec);
    return found?.state === 'not applicable' ? [{ spec, state: found.state, reason: found.reason }] : [];
  });
}

function tables(rows: readonly Row[], all: readonly string[], summed: readonly Row[]): string {
  const groups = [...new Set(all.map(groupOf))].sort();
  const count = (of: readonly Row[], state: State): number => of.filter((row) => row.state === state).length;
  const totals = groups.map((group) => {
    const own = [...rows, ...summed].filter(({ spec }) => groupOf(spec) === group);
    const notRun = all.filter((spec) => groupOf(spec) === group).length - own.length;
    return `| ${group} | ${count(own, 'passed')} | ${count(own, 'failed')} | ${count(own, 'not applicable')} | ${notRun} |`;
  });
  const lines = rows.map(({ spec, state, reason }) => `| ${cell(spec)} | ${state} | ${cell(reason)} |`);
  return [
    '| group | passed | failed | not applicable | not run yet |',
    '| --- | --- | --- | --- | --- |',
    ...totals,
    '',
    '| spec | | why |',
    '| --- | --- | --- |',
    ...lines,
    '',
    ...byReason(summed),
  ].join('\n');
}

function byReason(summed: readonly Row[]): readonly string[] {
  if (summed.length === 0) return [];
  const specsOf = (reason: string): number => summed.filter((row) => row.reason === reason).length;
  const lines = [...new Set(summed.map(({ reason }) => reason))].map(
    (reason) => `| ${specsOf(reason)} | ${cell(reason)} |`,
  );
  return ['| specs that do not apply | why |', '| --- | --- |', ...lines, ''];
}

/** Where a table is in the page. */
function placeOf(page: string, table: TableName): readonly [from: number, to: number] {
  const [begin, end] = marksOf(table);
  const [from, to] = [page.indexOf(begin), page.indexOf(end)];
  if (from < 0 || to < from) throw new Error(`docs/conformance.md has no ${begin} … ${end}`);
  return [from + begin.length, to];
}

/** Rows that a table has. */
function rowsOf(page: string, table: TableName): Row[] {
  return page
    .slice(...placeOf(page, table))
    .split('\n')
    .flatMap((line): Row[] => {
      const [, spec = '', state = '', reason = ''] =
        /^\| ((?:[^|\\]|\\.)+?) \| (passed|failed|not applicable) \|((?:[^|\\]|\\.)*)\|$/.exec(line) ?? [];
      if (spec === '') return [];
      const plain = (text: string): string => text.replaceAll('\\|', '|').replaceAll('&lt;', '<').trim();
      return [{ spec: plain(spec), state: state as State, reason: plain(reason) }];
    });
}

/** Specs whose outcome the table does not have: they never ran, or failed without a reason. */
export function openSpecs(table: TableName, page: string, specs: readonly string[]): readonly string[] {
  const settled = new Set(rowsOf(page, table).flatMap(({ spec, reason }) => (reason === unexplained ? [] : [spec])));
  return specs.filter((spec) => !settled.has(spec));
}

/** Rows of specs that did not run this time stay, with the reasons of now, unless the suite has them no more. `all`: every spec that it has. */
export function withRows(
  table: TableName,
  page: string,
  rows: readonly Row[],
  all: readonly string[],
  reasons: readonly Reason[],
): string {
  const [from, to] = placeOf(page, table);
  const known = new Set(all);
  const summed = unasked(table, all, reasons);
  const unrun = new Set(summed.map(({ spec }) => spec));
  const before = rowsOf(page, table).map((row) => {
    const known = knownReason(reasons, row.spec, row.state);
    // What the suite itself said of a spec is kept.
    return known === undefined && row.state !== 'passed' ? row : { ...row, reason: known?.reason ?? '' };
  });
  const merged = new Map([...before, ...rows].map((row) => [row.spec, row]));
  const kept = [...merged.values()]
    .filter(({ spec }) => known.has(spec) && !unrun.has(spec))
    .sort((a, b) => (a.spec < b.spec ? -1 : 1));
  return `${page.slice(0, from)}\n\n${tables(kept, all, summed)}\n${page.slice(to)}`;
}
