/** A table with a filter, columns to sort by, and rows that are shown in portions. */
import type { ComponentChildren } from 'preact';
import { useMemo, useState } from 'preact/hooks';
import { type Column, filtered, type Order, sorted } from '../model/rows.ts';

export interface ShownColumn<Row> extends Column<Row> {
  /** What is shown; the value itself unless told. */
  readonly cell?: (row: Row) => ComponentChildren;
}

export interface TableProps<Row> {
  readonly name: string;
  readonly rows: readonly Row[];
  readonly columns: readonly ShownColumn<Row>[];
  readonly rowKey: (row: Row) => string;
  readonly order?: Order;
  readonly empty: ComponentChildren;
  /** Below so many rows there is no filter. */
  readonly filterFrom?: number;
}

const portion = 50;

export function Table<Row>({ name, rows, columns, rowKey, empty, ...rest }: TableProps<Row>) {
  const [filter, setFilter] = useState('');
  const [order, setOrder] = useState<Order>(rest.order ?? { key: columns[0]?.key ?? '', down: false });
  const [shown, setShown] = useState(portion);
  const found = useMemo(() => sorted(filtered(rows, columns, filter), columns, order), [rows, columns, filter, order]);
  if (rows.length === 0) return <>{empty}</>;
  return (
    <div>
      {rows.length >= (rest.filterFrom ?? 1) && (
        <div class="filter">
          <label>
            Filter
            <input
              type="search"
              value={filter}
              placeholder="words, labels as key=value"
              onInput={(event) => {
                setFilter(event.currentTarget.value);
                setShown(portion);
              }}
            />
          </label>
          <span class="quiet" role="status">
            {found.length === rows.length ? `${rows.length}` : `${found.length} of ${rows.length}`}
          </span>
        </div>
      )}
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: a region that scrolls has to be reachable by keyboard */}
      <section class="scroll" tabIndex={0} aria-label={`Table: ${name}`}>
        <table class="rows">
          <caption class="hidden">{name}</caption>
          <thead>
            <tr>
              {columns.map(({ key, title }) => (
                <th
                  key={key}
                  scope="col"
                  aria-sort={order.key !== key ? 'none' : order.down ? 'descending' : 'ascending'}
                >
                  <button
                    type="button"
                    class="sort"
                    onClick={() => setOrder({ key, down: order.key === key && !order.down })}
                  >
                    {title}
                    <span aria-hidden="true">{order.key === key ? (order.down ? ' ▾' : ' ▴') : ''}</span>
                  </button>
                </th>
              ))}
            </tr>
          </thead>
          <tbody>
            {found.slice(0, shown).map((row) => (
              <tr key={rowKey(row)}>
                {columns.map(({ key, value, cell }) => (
                  <td key={key}>{cell === undefined ? value(row) : cell(row)}</td>
                ))}
              </tr>
            ))}
          </tbody>
        </table>
      </section>
      {found.length === 0 && <p class="quiet">Nothing matches the filter.</p>}
      {found.length > shown && (
        <button type="button" onClick={() => setShown(shown + portion)}>
          Show {Math.min(portion, found.length - shown)} more of {found.length - shown}
        </button>
      )}
    </div>
  );
}
