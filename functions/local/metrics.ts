/** `GET /metrics` of the broker in local mode: plain HTTP at a loopback address of its own, so that no proxy in front publishes it. */
import http from 'node:http';
import { type AddressInfo, isIP } from 'node:net';
import { AppError } from '#shared/errors/app-error.ts';
import { brokerMetrics, processMetrics } from '#shared/metrics/definitions.ts';
import { Registry } from '#shared/metrics/registry.ts';
import type { OnAnswer } from './http-gateway.ts';
import { parseListenAddress } from './listen-address.ts';

export interface BrokerMetrics {
  readonly onAnswer: OnAnswer;
  /** Undefined: it is served nowhere. */
  readonly port: number | undefined;
  /** What is counted elsewhere. */
  follow(facts: { readonly sockets: () => number; readonly waiting: () => number }): void;
  close(): void;
}

const patienceMs = 5_000;

/** `listen`: `HOST:PORT` of loopback. Fails with `invalid_input` for another address, and when the port is taken. */
export async function serveBrokerMetrics(listen: string | undefined, version: string): Promise<BrokerMetrics> {
  const registry = new Registry();
  registry.set(brokerMetrics.build, { version, runtime: process.version }, 1);
  registry.collect(processMetrics.memory, () => [[{}, process.memoryUsage.rss()]]);
  registry.collect(processMetrics.cpu, () => {
    const { user, system } = process.cpuUsage();
    return [[{}, (user + system) / 1e6]];
  });
  const server = listen === undefined ? undefined : await serve(registry, listen);
  return {
    port: (server?.address() as AddressInfo | undefined)?.port,
    onAnswer(route, code, seconds) {
      registry.add(brokerMetrics.requests, { route, code: String(code) });
      registry.observe(brokerMetrics.duration, { route }, seconds);
    },
    follow({ sockets, waiting }) {
      registry.collect(brokerMetrics.sockets, () => [[{}, sockets()]]);
      registry.collect(brokerMetrics.waiting, () => [[{}, waiting()]]);
    },
    close() {
      server?.close();
      server?.closeAllConnections();
    },
  };
}

const isLoopback = (host: string): boolean =>
  host === 'localhost' || host === '::1' || (isIP(host) === 4 && host.startsWith('127.'));

async function serve(registry: Registry, listen: string): Promise<http.Server> {
  const { host, port } = parseListenAddress(listen);
  if (!isLoopback(host)) {
    throw new AppError(
      'invalid_input',
      `--metrics is ${JSON.stringify(listen)}, accepted: a port of 127.0.0.0/8, ::1 or localhost`,
      {
        detail: {
          field: 'metrics',
          value: listen,
          remedy:
            'metrics name routes and how much runs, and ask for no key: let a scraper on this machine, or a proxy of yours that asks for one, read them',
        },
      },
    );
  }
  const server = http.createServer({ requestTimeout: patienceMs, headersTimeout: patienceMs }, (request, response) => {
    if (request.url !== '/metrics') return void response.writeHead(404).end('there is only /metrics\n');
    response.setHeader('content-type', 'text/plain; version=0.0.4; charset=utf-8');
    response.end(registry.text());
  });
  await new Promise<void>((resolve, reject) => server.once('error', reject).listen(port, host, resolve));
  return server;
}
