/** What happened, the newest first: from the event feed, which every reader has, and from the audit log for those that may read it. */
import type { AuditRecord } from '#shared/api-client/broker-api.ts';
import { api } from '../data/api.ts';
import { events } from '../data/live.ts';
import { Empty, Failure, Section, Time } from './bits.tsx';
import { can, useLoad } from './load.ts';

interface Entry {
  readonly id: string;
  readonly at: string;
  readonly what: string;
  readonly more: string;
}

const short = (type: string): string => type.replace(/^dev\.isthmus\./, '').replace(/\.v\d+$/, '');

const textOf = (data: Readonly<Record<string, unknown>>): string =>
  Object.entries(data)
    .filter(([, value]) => ['string', 'number', 'boolean'].includes(typeof value))
    .map(([name, value]) => `${name} ${String(value)}`)
    .join(', ');

const ofAudit = ({ id, at, action, principal, from }: AuditRecord): Entry => ({
  id,
  at,
  what: action,
  more: `by ${principal} from ${from}`,
});

export function Timeline({ subject }: { subject: string }) {
  const audit = useLoad(
    async () => (can('audit:read') ? (await api.listAudit({ query: { subject, limit: 50 } })).items : []),
    [subject],
    subject,
  );
  const told = events.value
    .filter((event) => event.subject === subject)
    .map(({ id, time, type, data }): Entry => ({ id, at: time, what: short(type), more: textOf(data) }));
  const entries = [...told, ...(audit.data ?? []).map(ofAudit)]
    .sort((a, b) => Date.parse(b.at) - Date.parse(a.at))
    .slice(0, 100);
  return (
    <Section title="Timeline">
      <Failure message={audit.failure} />
      {entries.length === 0 ? (
        <Empty title="Nothing in the last 24 hours." />
      ) : (
        <ol class="timeline">
          {entries.map(({ id, at, what, more }) => (
            <li key={id}>
              <Time at={at} />
              <span>
                {what} <span class="quiet">{more}</span>
              </span>
            </li>
          ))}
        </ol>
      )}
    </Section>
  );
}
