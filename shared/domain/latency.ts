/** A latency as Connections have it (`12ms`, `250μs`, `1.5s`), as a number. Pure. */

const unitMs: Readonly<Record<string, number>> = { s: 1_000, ms: 1, μs: 0.001, µs: 0.001 };

/** In milliseconds. Undefined: not measured, or no such text. */
export function latencyMs(text: string | undefined): number | undefined {
  const [, digits = '', unit = ''] = /^([\d.]+)(ms|μs|µs|s)$/.exec(text ?? '') ?? [];
  const ms = Number(digits) * (unitMs[unit] ?? Number.NaN);
  return Number.isFinite(ms) && digits !== '' ? ms : undefined;
}
