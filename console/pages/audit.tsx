/** The audit log: what the broker filters, page after page, and the same as a file. */
import { useState } from 'preact/hooks';
import type { AuditRecord } from '#shared/api-client/broker-api.ts';
import { all, api, messageOf } from '../data/api.ts';
import { ActButton } from '../parts/actions.tsx';
import { Command, Empty, Failure, Section, Time } from '../parts/bits.tsx';
import { Form, filled, type Values } from '../parts/form.tsx';
import { useLoad } from '../parts/load.ts';
import { type ShownColumn, Table } from '../parts/table.tsx';

const columns: readonly ShownColumn<AuditRecord>[] = [
  { key: 'at', title: 'When', value: ({ at }) => Date.parse(at), cell: ({ at }) => <Time at={at} /> },
  { key: 'principal', title: 'Principal', value: ({ principal }) => principal },
  { key: 'from', title: 'From', value: ({ from }) => from },
  { key: 'action', title: 'Action', value: ({ action }) => action },
  { key: 'subject', title: 'About', value: ({ subject }) => subject },
  {
    key: 'change',
    title: 'Before and after',
    value: ({ before, after }) => JSON.stringify({ before, after }),
    cell: ({ before, after }) =>
      before === undefined && after === undefined ? (
        ''
      ) : (
        <details>
          <summary>Show</summary>
          <pre>{JSON.stringify({ before, after }, undefined, 2)}</pre>
        </details>
      ),
  },
];

type Filter = Readonly<Record<string, string>>;

/** Of a field `datetime` in the zone of the reader. */
const timeOf = (text: string | undefined): string | undefined => (text ? new Date(text).toISOString() : undefined);

function filterOf(values: Values): Filter {
  const [since, until] = [timeOf(values.since), timeOf(values.until)];
  return { ...filled(values, 'principal', 'action', 'subject'), ...(since && { since }), ...(until && { until }) };
}

const read = (filter: Filter, cursor?: string) => api.listAudit({ query: { ...filter, limit: 100, cursor } });

export function AuditPage() {
  const [filter, setFilter] = useState<Filter>({});
  return (
    <>
      <h1>Audit log</h1>
      <Section title="Which records">
        <Form
          fields={[
            { name: 'principal', label: 'Principal', placeholder: 'api-key/ak_…' },
            { name: 'action', label: 'Action', placeholder: 'peering.request' },
            { name: 'subject', label: 'About', placeholder: 'peering/pe_…' },
            {
              name: 'since',
              label: 'Of this time or later',
              placeholder: '2026-11-22 09:00',
              hint: 'In your own zone.',
            },
            { name: 'until', label: 'Before', placeholder: '2026-11-23' },
          ]}
          submit="Search"
          lacks={({ since, until }) =>
            [since, until].some((text) => text && Number.isNaN(Date.parse(text))) ? 'a time' : undefined
          }
          onSubmit={async (values) => setFilter(filterOf(values))}
        />
      </Section>
      <Records key={JSON.stringify(filter)} filter={filter} />
    </>
  );
}

function Records({ filter }: { filter: Filter }) {
  const [more, setMore] = useState<readonly AuditRecord[]>([]);
  const [cursor, setCursor] = useState<string>();
  const { data, failure, reload } = useLoad(async () => {
    const page = await read(filter);
    setMore([]);
    setCursor(page.cursor);
    return page.items;
  }, [filter]);
  const [trouble, setTrouble] = useState<string>();
  const goOn = async (): Promise<void> => {
    try {
      const page = await read(filter, cursor);
      setMore((before) => [...before, ...page.items]);
      setCursor(page.cursor);
    } catch (error) {
      setTrouble(messageOf(error));
    }
  };
  return (
    <Section
      title="Records"
      actions={
        <>
          <ActButton label="Look again" onAct={() => reload().then(() => null)} />
          <ActButton label="Export as JSON lines" onAct={() => exportAll(filter)} />
        </>
      }
    >
      <Failure message={failure ?? trouble} />
      {data && (
        <Table
          name="Audit records"
          rows={[...data, ...more]}
          columns={columns}
          rowKey={({ id }) => id}
          order={{ key: 'at', down: true }}
          empty={
            <Empty title={cursor === undefined ? 'No record matches.' : 'No record so far; the search goes on.'}>
              <Command line="isthmus get audit --help" />
            </Empty>
          }
        />
      )}
      {cursor !== undefined && (
        <button type="button" onClick={() => void goOn()}>
          Older records
        </button>
      )}
    </Section>
  );
}

/** Every record that matches, not only those on the page. */
async function exportAll(filter: Filter): Promise<string> {
  const records = await all((page) => api.listAudit({ query: { ...filter, ...page } }));
  const lines = records.map((record) => `${JSON.stringify(record)}\n`).join('');
  const link = document.createElement('a');
  link.href = URL.createObjectURL(new Blob([lines], { type: 'application/x-ndjson' }));
  link.download = `audit-${new Date().toISOString().slice(0, 10)}.jsonl`;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10_000);
  return `${records.length} records`;
}
