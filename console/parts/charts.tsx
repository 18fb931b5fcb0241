/** Small pictures of what was measured in the last hour or day, each with its figures as a table. */
import { useEffect, useState } from 'preact/hooks';
import type { api } from '../data/api.ts';
import { type Chart, pathOf, rowsOf, type Span, topOf, wordsOf } from '../model/series.ts';
import { Empty, Failure, Section } from './bits.tsx';
import { useLoad } from './load.ts';

const box = { width: 300, height: 80 };
const againMs = 60_000;

export type SpanName = NonNullable<NonNullable<Parameters<typeof api.getPeeringSamples>[0]['query']>['span']>;

export interface Measured {
  readonly span: Span;
  readonly charts: readonly Chart[];
}

const spanNames: readonly SpanName[] = ['hour', 'day'];
const clock = new Intl.DateTimeFormat(undefined, { hour: '2-digit', minute: '2-digit' });

/** `read` again each minute while the page is looked at. `deps`: what `read` depends on. */
export function Charts({
  read,
  deps,
  note,
}: {
  read: (span: SpanName) => Promise<Measured>;
  deps: readonly unknown[];
  note?: string;
}) {
  const [span, setSpan] = useState<SpanName>('hour');
  const { data, failure, reload } = useLoad(() => read(span), [span, ...deps]);
  useEffect(() => {
    const timer = setInterval(() => !document.hidden && void reload(), againMs);
    return () => clearInterval(timer);
  }, [reload]);
  const choose = spanNames.map((name) => (
    <button key={name} type="button" class="small" aria-pressed={name === span} onClick={() => setSpan(name)}>
      Last {name}
    </button>
  ));
  return (
    <Section title="Lately" actions={choose}>
      <Failure message={failure} />
      {data !== undefined && data.charts.length === 0 && (
        <Empty title={`Nothing was measured in the last ${span}.`}>
          <p>Agents measure every minute of a peering, and report at least every five minutes while its link is up.</p>
        </Empty>
      )}
      {data !== undefined && data.charts.length > 0 && (
        <div class="charts">
          {data.charts.map((chart) => (
            <Picture key={chart.title} chart={chart} span={data.span} />
          ))}
        </div>
      )}
      {note !== undefined && <p class="hint">{note}</p>}
    </Section>
  );
}

function Picture({ chart, span }: { chart: Chart; span: Span }) {
  const [open, setOpen] = useState(false);
  const top = topOf(chart);
  return (
    <figure class="chart">
      <figcaption>
        <strong>{chart.title}</strong> <span class="quiet">up to {chart.text(top)}</span>
        <ul class="legend">
          {chart.lines.map(({ name, values }, index) => (
            <li key={name} class={`line${index}`}>
              {name}: {chart.text(values.at(-1)?.[1] ?? 0)}
            </li>
          ))}
        </ul>
      </figcaption>
      <svg viewBox={`0 0 ${box.width} ${box.height}`} preserveAspectRatio="none" role="img" aria-label={wordsOf(chart)}>
        {chart.lines.map((line, index) => (
          <path key={line.name} class={`line${index}`} d={pathOf(line, span, top, box)} />
        ))}
      </svg>
      <div class="ends quiet" aria-hidden="true">
        <span>{clock.format(span.from)}</span>
        <span>{clock.format(span.to)}</span>
      </div>
      <details onToggle={(event) => setOpen(event.currentTarget.open)}>
        <summary>{chart.title} as a table</summary>
        {open && <Figures chart={chart} />}
      </details>
    </figure>
  );
}

const Figures = ({ chart }: { chart: Chart }) => (
  // biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls has to be reached by keyboard
  <section class="figures" aria-label={`Figures: ${chart.title}`} tabIndex={0}>
    <table>
      <thead>
        <tr>
          <th scope="col">Time</th>
          {chart.lines.map(({ name }) => (
            <th key={name} scope="col">
              {name}
            </th>
          ))}
        </tr>
      </thead>
      <tbody>
        {rowsOf(chart).map(([at, ...values]) => (
          <tr key={at}>
            <th scope="row">{clock.format(at)}</th>
            {values.map((value, index) => (
              <td key={chart.lines[index]?.name}>{value === undefined ? '' : chart.text(value)}</td>
            ))}
          </tr>
        ))}
      </tbody>
    </table>
  </section>
);
