/** Tells listeners in this process of each request that ended: what `--verbose` of the command line prints. Never headers, bodies or queries. */
import { channel } from 'node:diagnostics_channel';

export interface ExchangeReport {
  readonly method: string;
  /** Origin and path. */
  readonly url: string;
  readonly status?: number;
  /** Instead of a status. */
  readonly problem?: string;
  readonly ms: number;
}

const reports = channel('isthmus.exchange');

/** Costs nothing while there is no listener. `path` may have a query, which is not passed on. */
export async function reported<R extends { readonly status: number }>(
  { method, origin, path }: { readonly method: string; readonly origin: string; readonly path: string },
  now: () => number,
  exchange: () => Promise<R>,
): Promise<R> {
  if (!reports.hasSubscribers) return exchange();
  const began = now();
  const report = (how: Pick<ExchangeReport, 'status' | 'problem'>): void =>
    reports.publish({ method, url: `${origin}${path.split('?', 1)[0]}`, ...how, ms: now() - began });
  try {
    const answer = await exchange();
    report({ status: answer.status });
    return answer;
  } catch (error) {
    report({ problem: error instanceof Error ? error.message : String(error) });
    throw error;
  }
}

/** Returns what ends it. */
export function onExchange(listener: (report: ExchangeReport) => void): () => void {
  const hear = (message: unknown): void => listener(message as ExchangeReport);
  reports.subscribe(hear);
  return () => void reports.unsubscribe(hear);
}
