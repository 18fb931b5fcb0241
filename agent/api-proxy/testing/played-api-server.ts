/** An API server that is played, with TLS on loopback. */
import type { IncomingMessage, RequestListener } from 'node:http';
import * as https from 'node:https';
import type { AddressInfo } from 'node:net';
import type { Duplex } from 'node:stream';
import type { ServingCertificate } from '#agent/pki/webhook-certificate.ts';

export interface PlayedApiServer {
  readonly server: https.Server;
  readonly port: number;
  close(): Promise<void>;
}

/** Requests are answered by `answer`; what comes by an upgraded connection goes back as it is. `refuses`: upgrades that get a 401 instead. */
export async function playApiServer(
  { certificate, privateKey }: ServingCertificate,
  answer: RequestListener,
  refuses: (request: IncomingMessage) => boolean = () => false,
): Promise<PlayedApiServer> {
  const streams = new Set<Duplex>();
  const server = https.createServer({ cert: certificate, key: privateKey }, answer);
  server.on('upgrade', (request, socket: Duplex) => {
    streams.add(socket);
    socket.on('error', () => socket.destroy());
    if (refuses(request))
      return void socket.end('HTTP/1.1 401 Unauthorized\r\nContent-Length: 0\r\nConnection: close\r\n\r\n');
    const head = ['HTTP/1.1 101 Switching Protocols', 'Connection: Upgrade', `Upgrade: ${request.headers.upgrade}`];
    socket.write(`${head.join('\r\n')}\r\n\r\n`);
    socket.pipe(socket);
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return {
    server,
    port: (server.address() as AddressInfo).port,
    close() {
      server.closeAllConnections();
      for (const socket of streams) socket.destroy();
      return new Promise((resolve) => server.close(() => resolve()));
    },
  };
}
