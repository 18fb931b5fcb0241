/** Stands between an agent and a broker: passes everything on, remembers it, and spoils single exchanges on demand. */
import { readFile } from 'node:fs/promises';
import type { IncomingMessage } from 'node:http';
import { createServer, request, type Server } from 'node:https';
import type { AddressInfo } from 'node:net';
import type { Duplex } from 'node:stream';
import { WebSocket, WebSocketServer } from 'ws';

export interface Exchange {
  readonly method: string;
  readonly path: string;
  readonly authorization: string;
  readonly body: string;
  readonly at: number;
  status?: number;
  answer?: string;
}

interface Frame {
  readonly from: 'agent' | 'broker';
  readonly text: string;
  readonly at: number;
}

/** `lose`: the broker takes the request and the agent gets no answer. `busy`: the broker does not get it. */
type Fault = { readonly do: 'lose' } | { readonly do: 'busy'; readonly retryAfterSeconds: number };

export interface RecordingProxy {
  readonly url: string;
  readonly exchanges: readonly Exchange[];
  readonly frames: readonly Frame[];
  /** Open WebSockets. */
  readonly open: () => number;
  /** Spoils the next request that matches. */
  spoil(matches: (exchange: Exchange) => boolean, fault: Fault): void;
  /** Closes all WebSockets and refuses new ones until it is called with false. */
  refuseSockets(refuse: boolean): void;
  /** The broker behind it: its address, and the file with its serving certificate and key, which this shows too. */
  serve(broker: { readonly port: number; readonly servingFile: string; readonly caPem: string }): Promise<void>;
  close(): Promise<void>;
}

async function bodyOf(message: IncomingMessage): Promise<string> {
  const chunks: Buffer[] = [];
  for await (const chunk of message as AsyncIterable<Buffer>) chunks.push(chunk);
  return Buffer.concat(chunks).toString('utf8');
}

const busy = (seconds: number): string =>
  JSON.stringify({
    type: 'urn:isthmus:error:store_busy',
    title: 'the database is busy',
    status: 503,
    detail: `spoilt by the kit; again in ${seconds} s`,
    code: 'store_busy',
    requestId: 'req_kit',
    retryable: true,
    remedy: 'repeat it',
  });

export async function startRecordingProxy(): Promise<RecordingProxy> {
  const exchanges: Exchange[] = [];
  const frames: Frame[] = [];
  const faults: { readonly matches: (exchange: Exchange) => boolean; readonly fault: Fault }[] = [];
  const sockets = new WebSocketServer({ noServer: true });
  let refusing = false;
  let target = { port: 0, ca: '' };

  const server: Server = createServer((message, response) => {
    const pass = async (): Promise<void> => {
      const exchange: Exchange = {
        method: message.method ?? '',
        path: message.url ?? '',
        authorization: message.headers.authorization ?? '',
        body: await bodyOf(message),
        at: Date.now(),
      };
      const index = faults.findIndex(({ matches }) => matches(exchange));
      const fault = index < 0 ? undefined : faults.splice(index, 1)[0]?.fault;
      if (fault?.do === 'busy') {
        exchange.status = 503;
        exchanges.push(exchange);
        const headers = { 'content-type': 'application/problem+json', 'retry-after': String(fault.retryAfterSeconds) };
        response.writeHead(503, headers).end(busy(fault.retryAfterSeconds));
        return;
      }
      const { host: _, ...headers } = message.headers;
      const sent = request(
        { host: '127.0.0.1', port: target.port, ca: target.ca, method: exchange.method, path: exchange.path, headers },
        (answer) => {
          bodyOf(answer).then((text) => {
            exchange.status = answer.statusCode ?? 0;
            exchange.answer = text;
            exchanges.push(exchange);
            if (fault?.do === 'lose') message.socket.destroy();
            else response.writeHead(answer.statusCode ?? 502, answer.headers).end(text);
          }, fail);
        },
      );
      const fail = (): void => void message.socket.destroy();
      sent.on('error', fail);
      sent.end(exchange.body);
    };
    pass().catch(() => message.socket.destroy());
  });

  server.on('upgrade', (message: IncomingMessage, raw: Duplex, head: Buffer) => {
    raw.on('error', () => raw.destroy());
    if (refusing) {
      raw.end('HTTP/1.1 503 Refused\r\nretry-after: 1\r\ncontent-length: 0\r\nconnection: close\r\n\r\n');
      return;
    }
    const { authorization = '' } = message.headers;
    const exchange: Exchange = { method: 'GET', path: message.url ?? '', authorization, body: '', at: Date.now() };
    const behind = new WebSocket(`wss://127.0.0.1:${target.port}${message.url}`, {
      ca: target.ca,
      headers: { authorization },
    });
    behind.once('unexpected-response', (_request, answer) => {
      exchanges.push({ ...exchange, status: answer.statusCode ?? 0 });
      raw.end(`HTTP/1.1 ${answer.statusCode} Refused\r\ncontent-length: 0\r\nconnection: close\r\n\r\n`);
    });
    behind.on('error', () => raw.destroy());
    behind.once('open', () => {
      exchanges.push({ ...exchange, status: 101 });
      sockets.handleUpgrade(message, raw, head, (front) => {
        const relay = (from: Frame['from'], source: WebSocket, sink: WebSocket): void => {
          source.on('message', (data) => {
            frames.push({ from, text: String(data), at: Date.now() });
            sink.send(String(data));
          });
          source.on('close', () => sink.close());
          source.on('error', () => sink.terminate());
        };
        relay('agent', front, behind);
        relay('broker', behind, front);
      });
    });
  });

  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return {
    url: `https://127.0.0.1:${(server.address() as AddressInfo).port}`,
    exchanges,
    frames,
    open: () => sockets.clients.size,
    spoil: (matches, fault) => void faults.push({ matches, fault }),
    refuseSockets(refuse) {
      refusing = refuse;
      if (refuse) for (const socket of sockets.clients) socket.terminate();
    },
    async serve({ port, servingFile, caPem }) {
      const pem = await readFile(servingFile, 'utf8');
      server.setSecureContext({ cert: `${pem}\n${caPem}`, key: pem });
      target = { port, ca: caPem };
    },
    async close() {
      for (const socket of sockets.clients) socket.terminate();
      const closed = new Promise((resolve) => server.close(resolve));
      server.closeAllConnections();
      await closed;
    },
  };
}
