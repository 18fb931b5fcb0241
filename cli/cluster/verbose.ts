/** `--verbose`: each request to a cluster or the broker as one line on stderr. */
import type { CliIo } from '#cli/output/io.ts';
import { onExchange } from '#kube/http/exchange-reports.ts';

/** Until the command ends. */
export function showRequests(io: Pick<CliIo, 'stderr' | 'signal'>): void {
  const stop = onExchange(({ method, url, status, problem, ms }) => {
    io.stderr.write(`${method} ${url} ${status ?? `failed: ${problem}`} ${Math.round(ms)} ms\n`);
  });
  io.signal.addEventListener('abort', stop, { once: true });
}
