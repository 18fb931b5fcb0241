/** The event feed of the last 24 hours. */
import type { Event } from '#shared/api-client/broker-api.ts';
import { connection, events } from '../data/live.ts';
import { hrefOf } from '../data/route.ts';
import { Command, Empty, Section, Time } from '../parts/bits.tsx';
import { type ShownColumn, Table } from '../parts/table.tsx';

const linkOf = (subject: string) => {
  const [kind = '', id = ''] = subject.split('/');
  return kind === 'cluster' || kind === 'peering' ? <a href={hrefOf(kind, id)}>{subject}</a> : subject;
};

const columns: readonly ShownColumn<Event>[] = [
  { key: 'time', title: 'When', value: ({ time }) => Date.parse(time), cell: ({ time }) => <Time at={time} /> },
  { key: 'type', title: 'What', value: ({ type }) => type.replace(/^dev\.isthmus\./, '') },
  { key: 'subject', title: 'About', value: ({ subject }) => subject, cell: ({ subject }) => linkOf(subject) },
  {
    key: 'data',
    title: 'Data',
    value: ({ data }) => JSON.stringify(data),
    cell: ({ data }) => <code>{JSON.stringify(data)}</code>,
  },
];

export const EventsPage = () => (
  <>
    <h1>Events</h1>
    <Section title="The last 24 hours">
      <Table
        name="Events"
        rows={events.value}
        columns={columns}
        rowKey={({ id }) => id}
        order={{ key: 'time', down: true }}
        empty={
          connection.value === 'loading' ? null : (
            <Empty title="Nothing has happened in the last 24 hours.">
              <Command line="isthmus get events --follow" />
            </Empty>
          )
        }
      />
    </Section>
  </>
);
