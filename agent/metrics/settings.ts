/** Where and for which callers a process serves its metrics: read from the environment, checked by hand, since a schema library would cost every node its memory. */

export interface MetricsSettings {
  readonly host?: string;
  readonly port: number;
  /** `open`: plain HTTP, to every caller. */
  readonly access: 'authenticated' | 'open';
}

type Env = Readonly<Record<string, string | undefined>>;

/** Undefined: metrics are not served. What is wrong goes to `faults`. */
export function metricsSettings(env: Env, faults: string[]): MetricsSettings | undefined {
  const text = env.ISTHMUS_METRICS_PORT ?? '';
  if (text === '') return undefined;
  const port = Number(text);
  if (!Number.isInteger(port) || port < 0 || port > 65_535)
    faults.push(`ISTHMUS_METRICS_PORT is ${JSON.stringify(text)}, accepted: an integer from 0 to 65535`);
  const access = env.ISTHMUS_METRICS_ACCESS || 'authenticated';
  if (access !== 'authenticated' && access !== 'open')
    faults.push(`ISTHMUS_METRICS_ACCESS is ${JSON.stringify(access)}, accepted: authenticated, open`);
  const host = env.ISTHMUS_METRICS_HOST;
  return { port, access: access === 'open' ? 'open' : 'authenticated', ...(host ? { host } : {}) };
}
