/** A section with one table of what was read from the broker, and columns that several tables have. */
import type { ComponentChildren } from 'preact';
import type { Right } from '../model/rights.ts';
import { Failure, Section, Time } from './bits.tsx';
import { can, type Loaded } from './load.ts';
import { type ShownColumn, Table, type TableProps } from './table.tsx';

interface ListProps<Row> extends Omit<TableProps<Row>, 'name' | 'rows'> {
  readonly title: string;
  /** Buttons beside the title. */
  readonly actions?: ComponentChildren;
  /** Of the table; the title unless told. */
  readonly name?: string;
  /** No table until it is there; then it stays while a later reading fails. */
  readonly data: Loaded<readonly Row[]>['data'];
  readonly failure: Loaded<unknown>['failure'];
}

export const List = <Row,>({ title, actions, name = title, data, failure, ...table }: ListProps<Row>) => (
  <Section title={title} actions={actions}>
    <Failure message={failure} />
    {data && <Table name={name} rows={data} {...table} />}
  </Section>
);

interface OwnListProps<Row> extends Omit<ListProps<Row>, 'actions' | 'rowKey' | 'filterFrom'> {
  /** Which the reader needs for `make`. */
  readonly permission: Right;
  /** The form, or several, that makes a row. */
  readonly make: ComponentChildren;
}

/** What the tenant has made, each with an ID; mostly few of them. */
export const OwnList = <Row extends { readonly id: string }>({ permission, make, ...list }: OwnListProps<Row>) => (
  <List actions={can(permission) && make} rowKey={({ id }) => id} filterFrom={8} {...list} />
);

/** `at`: RFC 3339. */
export const timeColumn = <Row,>(key: string, title: string, at: (row: Row) => string): ShownColumn<Row> => ({
  key,
  title,
  value: (row) => Date.parse(at(row)),
  cell: (row) => <Time at={at(row)} />,
});

export const actionsColumn = <Row,>(cell: (row: Row) => ComponentChildren): ShownColumn<Row> => ({
  key: 'act',
  title: 'Actions',
  value: () => '',
  cell,
});
