/** What the broker measures itself, by kind of caller: metrics that its access log embeds (functions/runtime/embedded-metrics.ts). */
import { Duration } from 'aws-cdk-lib';
import { GraphWidget, Metric } from 'aws-cdk-lib/aws-cloudwatch';
import { callerKinds, metricNamespace, requestMetric } from '#shared/metrics/embedded.ts';

const of = (broker: string, metricName: string, statistic: string): Metric[] =>
  callerKinds.map(
    (Caller) =>
      new Metric({
        namespace: metricNamespace,
        metricName,
        dimensionsMap: { Broker: broker, Caller },
        statistic,
        label: Caller,
        period: Duration.minutes(5),
      }),
  );

const graph = (title: string, unit: string, left: Metric[]): GraphWidget =>
  new GraphWidget({ title, left, width: 8, height: 6, leftYAxis: { label: unit, showUnits: false, min: 0 } });

/** `broker`: the name of its table. */
export const requestWidgets = (broker: string): GraphWidget[] => [
  graph('Requests by caller, without long polls', 'requests', of(broker, requestMetric.duration, 'SampleCount')),
  graph('Duration by caller, p95, without long polls', 'ms', of(broker, requestMetric.duration, 'p95')),
  graph('Refused and failed by caller', 'requests', [
    ...of(broker, requestMetric.refused, 'Sum'),
    ...of(broker, requestMetric.failed, 'Sum').map((metric) => metric.with({ label: `${metric.label}, failed` })),
  ]),
];
