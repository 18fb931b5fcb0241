/** Text tables in kubectl's manner: upper-case heads, columns as wide as their widest cell, three spaces between. */

export interface Column<T> {
  readonly head: string;
  readonly cell: (row: T) => string;
  /** Applied after the width was measured, so colours do not shift columns. */
  readonly paint?: (text: string, row: T) => string;
}

export function table<T>(rows: readonly T[], columns: readonly Column<T>[]): string {
  const cells = rows.map((row) => columns.map((column) => column.cell(row) || '-'));
  const widths = columns.map((column, i) => Math.max(column.head.length, ...cells.map((line) => line[i]?.length ?? 0)));
  const last = columns.length - 1;
  const pad = (text: string, i: number) => (i === last ? text : text.padEnd(widths[i] ?? 0));
  const head = columns.map((column, i) => pad(column.head.toUpperCase(), i)).join('   ');
  const body = rows.map((row, r) =>
    columns
      .map((column, i) => {
        const text = cells[r]?.[i] ?? '';
        const painted = column.paint ? column.paint(text, row) : text;
        return painted + pad(text, i).slice(text.length);
      })
      .join('   '),
  );
  return `${[head, ...body].join('\n')}\n`;
}
