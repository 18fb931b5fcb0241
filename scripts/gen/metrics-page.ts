/** docs/reference/metrics.md: every metric with its type, labels and meaning. */
import * as definitions from '#shared/metrics/definitions.ts';
import type { MetricDefinition } from '#shared/metrics/registry.ts';
import { code, generatedNote, page, table } from './markdown.ts';

const row = ({ name, type, labels, help, buckets }: MetricDefinition): string[] => [
  code(name),
  type,
  labels.map(code).join(', '),
  buckets === undefined ? help : `${help} Buckets: ${buckets.join(', ')}.`,
];

const section = (title: string, group: Readonly<Record<string, MetricDefinition>>): string =>
  [`## ${title}`, table(['name', 'type', 'labels', 'meaning'], Object.values(group).map(row))].join('\n\n');

export function metricsPage(): string {
  return page(
    generatedNote('shared/metrics/definitions.ts'),
    '# Metrics',
    "[Metrics](../metrics.md) says how they are served and scraped. Names that begin with `liqo_` are Liqo's, with its labels and meaning; the counter of reflected items is a gauge, because the number falls when objects go.",
    section('Which metrics has every process of the agent?', definitions.processMetrics),
    section('Which metrics have the controllers?', definitions.controllerMetrics),
    section('Which metrics does a link have?', definitions.linkMetrics),
    section('Which metrics has the broker?', definitions.brokerMetrics),
  );
}
