/** The drill's table, as it is printed and as docs/doctor.md has it. Pure. */
import type { Answered } from './drill.ts';

const [begin, end] = ['<!-- drill: begin -->', '<!-- drill: end -->'] as const;

const cell = (text: string): string => text.replaceAll('|', '\\|').replaceAll('\n', ' ');

export const drillTable = (answered: readonly Answered[]): string =>
  [
    '| fault | first answer | |',
    '| --- | --- | --- |',
    ...answered.map(
      ({ fault, first, right }) =>
        `| ${cell(fault.what)} | ${first === undefined ? 'nothing' : `\`${first.code}\``} | ${right ? 'right' : `wrong, it is \`${fault.says}\``} |`,
    ),
    '',
  ].join('\n');

/** Rows of faults that were not injected this time stay. */
export function withTable(page: string, answered: readonly Answered[]): string {
  const [from, to] = [page.indexOf(begin), page.indexOf(end)];
  if (from < 0 || to < from) throw new Error(`docs/doctor.md has no ${begin} … ${end}`);
  const rows = new Map(
    [...page.slice(from, to).split('\n'), ...drillTable(answered).split('\n')]
      .filter((line) => line.startsWith('| '))
      .map((line) => [line.split(' | ')[0] ?? '', line]),
  );
  const [head, ...body] = [...rows.values()].filter((line) => !line.startsWith('| ---'));
  return `${page.slice(0, from)}${begin}\n${[head, '| --- | --- | --- |', ...body].join('\n')}\n${page.slice(to)}`;
}
