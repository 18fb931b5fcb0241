/** Names of the metrics that the hosted broker embeds in its access log, for what writes them and for the dashboard that shows them. */
export const metricNamespace = 'Isthmus';
export const requestMetric = { duration: 'RequestDuration', refused: 'Refused', failed: 'Failed' } as const;
/** Values of the dimension `Caller`. */
export const callerKinds = ['agent', 'user', 'operator', 'unknown'] as const;
