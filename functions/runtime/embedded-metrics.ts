/**
 * Metrics of the hosted broker, embedded in the lines of its access log: CloudWatch makes metrics of a JSON line that has `_aws` (Embedded Metric
 * Format), so that nothing is sent while a request waits. Dimensions are broker and kind of caller: a metric costs by its dimension values, and
 * routes and tenants would make thousands. Both are in the same line, for Logs Insights. Each byte is billed for each request, so a line names
 * only the metrics that it has something to say about: a refusal or failure that is not counted counts as none.
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
  const outcome = status >= 500 ? failed : status >= 400 ? refused : undefined;
  const byCaller = ['Broker', 'Caller'];
  const directives = [
    // The second set is all callers together, which the alarm watches.
    ...(waited ? [] : [{ Dimensions: [byCaller, ['Broker']], Metrics: [{ Name: duration, Unit: 'Milliseconds' }] }]),
    ...(outcome === undefined ? [] : [{ Dimensions: [byCaller], Metrics: [{ Name: outcome, Unit: 'Count' }] }]),
  ];
  if (directives.length === 0) return {};
  return {
    _aws: { Timestamp: at, CloudWatchMetrics: directives.map((each) => ({ Namespace: metricNamespace, ...each })) },
    Broker: broker,
    Caller: kindOf(principal),
    ...(!waited && { [duration]: ms }),
    ...(outcome !== undefined && { [outcome]: 1 }),
  };
}
