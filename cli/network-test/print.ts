/** The report as text: a line for each probe, and for each place where packets end what to do there. Pure. */
import { type Paint, toneOf } from '#cli/output/style.ts';
import { table } from '#cli/output/table.ts';
import type { Report } from './run.ts';
import type { Verdict } from './verdict.ts';

const words: Readonly<Record<Verdict['what'], string>> = {
  'pod-to-pod': 'pod to pod',
  'pod-to-service': 'pod to Service',
  'node-to-pod': 'node to pod',
  'pod-to-nodeport': 'pod to NodePort',
  'outside-to-nodeport': 'outside to NodePort',
  'pod-to-external': 'pod to external IP',
  'node-to-gateway': 'node to gateway',
  'gateway-to-peer': 'gateway to peer',
};

const target = ({ to, via, address }: Verdict): string =>
  `${to}${via === undefined ? '' : ` by ${via}`}${address === '' ? '' : ` (${address})`}`;

export function reportText({ rows, missing, untried = [] }: Report, paint: Paint): string {
  const failed = rows.filter(({ ok }) => !ok);
  const lines = table(rows, [
    { head: 'what', cell: ({ what }) => words[what] },
    { head: 'from', cell: ({ from }) => from },
    { head: 'to', cell: target },
    {
      head: 'result',
      cell: ({ ok, failing }) => (ok ? 'ok' : `failed: ${failing?.hop ?? 'unknown'}`),
      paint: (text, { ok }) => paint(toneOf(ok ? 'Ready' : 'Failed'), text),
    },
    { head: 'ms', cell: ({ ms }) => ms?.toString() ?? '' },
    { head: 'source seen', cell: ({ sources }) => sources.join(', ') },
  ]);
  const summary =
    failed.length === 0 ? `all ${rows.length} probes got through` : `${failed.length} of ${rows.length} probes failed`;
  return [
    lines,
    ...hops(failed),
    ...[...missing, ...untried].map((why) => `not tested: ${why}\n`),
    `${summary}\n`,
  ].join('');
}

/** Each place once, however many probes end there. */
function hops(failed: readonly Verdict[]): string[] {
  const found = new Map<string, { readonly text: string; count: number }>();
  for (const { failing } of failed) {
    if (failing === undefined) continue;
    const { hop, at, why, todo } = failing;
    const text = `${hop} at ${at}: ${why}\n  to do: ${todo}\n`;
    const known = found.get(text) ?? { text, count: 0 };
    known.count += 1;
    found.set(text, known);
  }
  const sorted = [...found.values()].sort((a, b) => b.count - a.count);
  return sorted.length === 0 ? [] : ['\n', ...sorted.map(({ text, count }) => `${count}x ${text}`), '\n'];
}
