/** Liveness, readiness and metrics of the agent process over plain HTTP inside the pod network. */
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { Registry } from 'prom-client';
import type { Log } from '#shared/ports/log.ts';

export interface Health {
  /** From now on `/readyz` answers 200. */
  ready(): void;
  readonly registry: Registry;
  readonly port: number;
}

export async function startHealth({ port, log }: { port: number; log: Log }, signal: AbortSignal): Promise<Health> {
  const registry = new Registry();
  let ready = false;
  const server = createServer((request, response) => {
    const path = (request.url ?? '/').split('?', 1)[0];
    if (path === '/healthz') return void response.end('ok\n');
    if (path === '/readyz') {
      response.statusCode = ready ? 200 : 503;
      return void response.end(ready ? 'ok\n' : 'starting: the API server has not answered yet\n');
    }
    if (path === '/metrics') {
      registry.metrics().then(
        (text) => response.setHeader('content-type', registry.contentType).end(text),
        (error: unknown) => {
          log.error('metrics cannot be collected', error);
          response.statusCode = 500;
          response.end();
        },
      );
      return;
    }
    response.statusCode = 404;
    response.end('there is /healthz, /readyz and /metrics\n');
  });
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject);
    server.listen(port, resolve);
  });
  signal.addEventListener('abort', () => server.close(), { once: true });
  return {
    ready: () => {
      ready = true;
    },
    registry,
    port: (server.address() as AddressInfo).port,
  };
}
