/** Liveness and readiness of the agent process over plain HTTP: inside the pod network, or on the node's loopback only. */
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';

export interface Health {
  /** From now on `/readyz` answers 200. */
  ready(): void;
  readonly port: number;
}

export interface HealthOptions {
  readonly port: number;
  /** Default: every address. */
  readonly host?: string;
}

export async function startHealth({ port, host }: HealthOptions, signal: AbortSignal): Promise<Health> {
  let ready = false;
  const server = createServer((request, response) => {
    const path = (request.url ?? '/').split('?', 1)[0];
    if (path === '/healthz') return void response.end('ok\n');
    if (path === '/readyz') {
      response.statusCode = ready ? 200 : 503;
      return void response.end(ready ? 'ok\n' : 'starting: the webhooks are not registered with the API server yet\n');
    }
    response.statusCode = 404;
    response.end('there is /healthz and /readyz\n');
  });
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject);
    server.listen(port, host, resolve);
  });
  signal.addEventListener('abort', () => server.close(), { once: true });
  return {
    ready: () => {
      ready = true;
    },
    port: (server.address() as AddressInfo).port,
  };
}
