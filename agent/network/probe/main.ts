/**
 * Entry of the test pods of `isthmus network test`: `serve` answers probes, `wait` only stays, `run ORDER` does probes and prints a JSON line
 * for each. Nothing that listens does anything on a caller's behalf: probes are ordered through the API server's exec alone.
 */
import { type ProbeOrder, probeNameEnv, probePort } from '#shared/domain/network-probe.ts';
import { runProbes } from './client.ts';
import { serveProbes } from './server.ts';

const stop = new AbortController();
for (const name of ['SIGTERM', 'SIGINT'] as const) process.once(name, () => stop.abort(new Error(`received ${name}`)));

const [role, order = ''] = process.argv.slice(2);
switch (role) {
  case 'serve':
    await serveProbes(process.env[probeNameEnv] ?? '', probePort, stop.signal);
    break;
  case 'wait': {
    const timer = setInterval(() => undefined, 60_000);
    stop.signal.addEventListener('abort', () => clearInterval(timer));
    break;
  }
  case 'run':
    await runProbes(
      JSON.parse(order) as ProbeOrder,
      (result) => process.stdout.write(`${JSON.stringify(result)}\n`),
      stop.signal,
    );
    break;
  default:
    process.stderr.write('accepted: serve, wait, run ORDER\n');
    process.exitCode = 2;
}
