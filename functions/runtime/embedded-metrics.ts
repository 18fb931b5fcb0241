/**
 * Metrics of the hosted broker, embedded in the lines of its access log: CloudWatch makes metrics of a JSON line that has `_aws` (Embedded Metric
 * Format), so that nothing is sent while a request waits. One dimension set, broker and kind of caller: a metric costs by its dimension values, and
 * routes and tenants would make thousands. Both are in the same line, for Logs Insights.
 */
import { type callerKinds, metricNamespace, requestMetric } from '#shared/metrics/embedded.ts';
import type { AnyPrincipal } from './route.ts';

interface Answered {
  /** Which of an account's brokers: the name of its table. */
  readonly broker: string;
  readonly principal: AnyPrincipal;
  readonly status: number;
  readonly ms: number;
  /** A long poll: its duration is no metric. */
  readonly waited: boolean;
  /** Milliseconds since the Unix epoch. */
  readonly at: number;
}

const kindOf = ({ caller, agent, operator }: AnyPrincipal): (typeof callerKinds)[number] =>
  agent !== undefined ? 'agent' : caller !== undefined ? 'user' : operator !== undefined ? 'operator' : 'unknown';

/** Fields of the line. Refused: a status of 400 to 499; failed: 500 and above. */
export function embeddedMetrics({ broker, principal, status, ms, waited, at }: Answered): Record<string, unknown> {
  const { duration, refused, failed } = requestMetric;
  const metrics = [
    ...(waited ? [] : [{ Name: duration, Unit: 'Milliseconds' }]),
    { Name: refused, Unit: 'Count' },
    { Name: failed, Unit: 'Count' },
  ];
  return {
    _aws: {
      Timestamp: at,
      CloudWatchMetrics: [{ Namespace: metricNamespace, Dimensions: [['Broker', 'Caller']], Metrics: metrics }],
    },
    Broker: broker,
    Caller: kindOf(principal),
    ...(!waited && { [duration]: ms }),
    [refused]: status >= 400 && status < 500 ? 1 : 0,
    [failed]: status >= 500 ? 1 : 0,
  };
}
