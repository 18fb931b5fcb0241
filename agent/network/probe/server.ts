/** The side of a network test that is called: answers with its name and the caller's address, and holds nothing else. */
import { createServer, type Server } from 'node:http';
import { largeBytes } from '#shared/domain/network-probe.ts';
import { unmapped } from '#shared/domain/socket-address.ts';

/** GET answers `{pod, source}`; POST takes up to `largeBytes` and answers with as much. Resolves once it listens; port 0 takes any. */
export function serveProbes(pod: string, port: number, signal: AbortSignal): Promise<Server> {
  const server = createServer((request, response) => {
    let received = 0;
    request.on('data', (chunk: Buffer) => {
      received += chunk.length;
      if (received > largeBytes) request.destroy();
    });
    request.on('end', () => {
      const source = unmapped(request.socket.remoteAddress ?? '');
      const padding = request.method === 'POST' ? { padding: 'x'.repeat(largeBytes) } : {};
      response.writeHead(200, { 'content-type': 'application/json', connection: 'close' });
      response.end(JSON.stringify({ pod, source, received, ...padding }));
    });
  });
  server.maxConnections = 256;
  server.requestTimeout = 30_000;
  signal.addEventListener('abort', () => {
    server.close();
    server.closeAllConnections();
  });
  return new Promise((resolve, reject) => {
    server.once('error', reject);
    server.listen(port, () => resolve(server));
  });
}
