/** Filtering and sorting of tables. */

export interface Column<Row> {
  readonly key: string;
  readonly title: string;
  /** What is sorted by and searched in. */
  readonly value: (row: Row) => string | number;
}

export interface Order {
  readonly key: string;
  readonly down: boolean;
}

/** Rows in which every word of `filter` is found, in any column. */
export function filtered<Row>(rows: readonly Row[], columns: readonly Column<Row>[], filter: string): readonly Row[] {
  const words = filter
    .toLowerCase()
    .split(/\s+/)
    .filter((word) => word !== '');
  if (words.length === 0) return rows;
  return rows.filter((row) => {
    const text = columns
      .map(({ value }) => String(value(row)))
      .join(' ')
      .toLowerCase();
    return words.every((word) => text.includes(word));
  });
}

export function sorted<Row>(
  rows: readonly Row[],
  columns: readonly Column<Row>[],
  { key, down }: Order,
): readonly Row[] {
  const column = columns.find((each) => each.key === key);
  if (column === undefined) return rows;
  const keyed = rows.map((row) => ({ row, value: column.value(row) }));
  keyed.sort((a, b) => compare(a.value, b.value) * (down ? -1 : 1));
  return keyed.map(({ row }) => row);
}

const collator = new Intl.Collator('en', { numeric: true });
const compare = (a: string | number, b: string | number): number =>
  typeof a === 'number' && typeof b === 'number' ? a - b : collator.compare(String(a), String(b));
