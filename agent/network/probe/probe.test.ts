import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterEach, expect, test } from 'vitest';
import { largeBytes, type Probe, type ProbeResult } from '#shared/domain/network-probe.ts';
import { runProbes } from './client.ts';
import { serveProbes } from './server.ts';

const stop = new AbortController();
const servers: Server[] = [];
afterEach(() => {
  for (const server of servers.splice(0)) {
    server.closeAllConnections();
    server.close();
  }
});
const portOf = (server: Server): number => (server.address() as AddressInfo).port;

async function probed(probes: readonly Probe[], timeoutMs = 2_000): Promise<ProbeResult[]> {
  const results: ProbeResult[] = [];
  await runProbes({ timeoutMs, patienceMs: 0, probes }, (result) => results.push(result), stop.signal);
  return results;
}
const http = (port: number, more: Partial<Extract<Probe, { kind: 'http' }>> = {}): Probe => ({
  kind: 'http',
  id: 'p',
  url: `http://127.0.0.1:${port}/`,
  large: false,
  times: 1,
  ...more,
});

test('a test pod answers with its name and the address that it saw, for small and for large requests', async () => {
  const server = await serveProbes('pod-1', 0, stop.signal);
  servers.push(server);
  const results = await probed([http(portOf(server), { times: 3 }), http(portOf(server), { id: 'l', large: true })]);
  expect(results.map(({ ms: _, ...result }) => result).sort((a, b) => (a.id < b.id ? -1 : 1))).toEqual([
    { id: 'l', ok: true, answeredBy: ['pod-1'], sources: ['127.0.0.1'] },
    { id: 'p', ok: true, answeredBy: ['pod-1'], sources: ['127.0.0.1'] },
  ]);
});

test('a test pod takes no more than a large probe has', async () => {
  const server = await serveProbes('pod-1', 0, stop.signal);
  servers.push(server);
  const answer = fetch(`http://127.0.0.1:${portOf(server)}/`, { method: 'POST', body: 'x'.repeat(largeBytes * 40) });
  await expect(answer).rejects.toThrow();
});

test('a closed port refuses at once, and a silent one is waited for until the given deadline', async () => {
  const silent = createServer(() => undefined).listen(0);
  servers.push(silent);
  const closed = createServer().listen(0);
  const port = portOf(closed);
  await new Promise((resolve) => closed.close(resolve));
  const [refused] = await probed([http(port)]);
  expect(refused).toMatchObject({ ok: false, failure: 'refused' });
  const [timeout] = await probed([http(portOf(silent))], 50);
  expect(timeout).toMatchObject({ ok: false, failure: 'timeout', message: 'no answer in 50 ms' });
});

test('a probe is repeated while patience lasts, and a host that is no test pod only has to answer', async () => {
  let calls = 0;
  const server = createServer((_request, response) => {
    calls += 1;
    if (calls === 1) response.destroy();
    else response.end('hello');
  }).listen(0);
  servers.push(server);
  const results: ProbeResult[] = [];
  const order = { timeoutMs: 1_000, patienceMs: 10_000, probes: [http(portOf(server))] };
  await runProbes(order, (result) => results.push(result), stop.signal);
  expect(results).toMatchObject([{ ok: true, answeredBy: [], sources: [] }]);
  expect(calls).toBe(2);
});
