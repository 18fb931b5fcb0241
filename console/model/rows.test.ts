import { expect, test } from 'vitest';
import { type Column, filtered, sorted } from './rows.ts';

interface Row {
  readonly name: string;
  readonly count: number;
  readonly labels: readonly string[];
}
const rows: readonly Row[] = [
  { name: 'c10', count: 2, labels: ['tier=gold'] },
  { name: 'c9', count: 10, labels: ['tier=iron'] },
  { name: 'rome', count: 1, labels: [] },
];
const columns: readonly Column<Row>[] = [
  { key: 'name', title: 'Name', value: ({ name }) => name },
  { key: 'count', title: 'Count', value: ({ count }) => count },
  { key: 'labels', title: 'Labels', value: ({ labels }) => labels.join(' ') },
];
const names = (found: readonly Row[]): readonly string[] => found.map(({ name }) => name);

test('a filter finds rows that have all of its words, also in labels', () => {
  const find = (filter: string) => names(filtered(rows, columns, filter));
  expect(find('')).toEqual(['c10', 'c9', 'rome']);
  expect(find('C')).toEqual(['c10', 'c9']);
  expect(find('c tier=gold')).toEqual(['c10']);
  expect(find('paris')).toEqual([]);
});

test('names with numbers sort by the numbers, and numbers as numbers', () => {
  expect(names(sorted(rows, columns, { key: 'name', down: false }))).toEqual(['c9', 'c10', 'rome']);
  expect(names(sorted(rows, columns, { key: 'count', down: true }))).toEqual(['c9', 'c10', 'rome']);
});
