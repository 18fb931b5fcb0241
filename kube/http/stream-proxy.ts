/** Passes one kubelet request on to the provider's API server: a plain answer as it comes, an upgraded connection as raw bytes both ways. */
import type { IncomingHttpHeaders, IncomingMessage, ServerResponse } from 'node:http';
import type { Duplex } from 'node:stream';
import type { ClusterConnection } from './connection.ts';
import { openRequest } from './request.ts';

/** How long the slower half of a connection may stay silent once the other half has ended. */
const lingerMs = 30_000;
const keepAliveMs = 30_000;
/** A stream is opened at once, or not at all; what is followed may be quiet for as long as it likes before its first word. */
const longestAnswerMs = 30_000;
/** A client may ask for an upgrade where the API server makes none, and get a list or a watch without end. */
const longestRefusalBytes = 1_048_576;

/** Of an upgrade, only what names the protocol travels on; credentials and host are the provider's. */
function upgradeHeaders(
  headers: IncomingHttpHeaders,
  distinct: NodeJS.Dict<string[]>,
): Record<string, string | string[]> {
  const out: Record<string, string | string[]> = { connection: 'Upgrade', upgrade: headers.upgrade ?? '' };
  for (const [name, values] of Object.entries(distinct)) {
    if (values && (name.startsWith('x-stream-protocol') || name.startsWith('sec-websocket-'))) out[name] = values;
  }
  return out;
}

const hopByHop: ReadonlySet<string> = new Set([
  'connection',
  'keep-alive',
  'transfer-encoding',
  'upgrade',
  'proxy-authenticate',
]);
const endToEnd = (headers: IncomingHttpHeaders): Record<string, string | string[]> =>
  Object.fromEntries(
    Object.entries(headers).filter(([name, value]) => value !== undefined && !hopByHop.has(name)),
  ) as Record<string, string | string[]>;

/** What goes along with a request that is passed on, and word of its answer. */
export interface Passed {
  /** Without those that `endToEndOf` leaves out; of an upgrade, in addition to what names its protocol. */
  readonly headers: Readonly<Record<string, string | readonly string[]>>;
  /** Called with the status of the answer. */
  answered(status: number): void;
}

/** Headers of a request that are for its receiver and not for the next hop, without credentials and host. */
export function endToEndOf(request: IncomingMessage): Record<string, string[]> {
  const named = (request.headers.connection ?? '').split(',').map((name) => name.trim().toLowerCase());
  const dropped = new Set([
    ...named,
    ...hopByHop,
    'host',
    'te',
    'trailer',
    'expect',
    'authorization',
    'proxy-authorization',
  ]);
  return Object.fromEntries(
    Object.entries(request.headersDistinct).filter(([name, values]) => values !== undefined && !dropped.has(name)),
  ) as Record<string, string[]>;
}

/**
 * As pipe does it, but the end goes out once all before it has, in a TLS record of its own: a reader of Go gets the last piece together with the end of the
 * body when both come in one record, and kube-apiserver drops that piece of a log that it sends on by WebSocket.
 */
function passBody(answer: IncomingMessage, response: ServerResponse): void {
  let written = Promise.resolve();
  answer.on('data', (piece: Buffer) => {
    written = new Promise((resolve) => {
      if (response.write(piece, () => resolve())) return;
      answer.pause();
      response.once('drain', () => answer.resume());
    });
  });
  answer.once('end', () => void written.then(() => response.end()));
}

/**
 * Everything without an upgrade. Without `passed`, of the request only its method and what it accepts go along. Resolves when the answer has ended
 * either way; rejects when none came.
 */
export async function passPlain(
  connection: ClusterConnection,
  path: string,
  request: IncomingMessage,
  response: ServerResponse,
  signal: AbortSignal,
  passed?: Passed,
): Promise<void> {
  await connection.authorize();
  if (signal.aborted || response.destroyed) return;
  const upstream = openRequest(connection, {
    method: request.method ?? 'GET',
    path,
    headers: passed?.headers ?? { accept: request.headers.accept ?? '*/*' },
  });
  const { 'content-length': length, 'transfer-encoding': coding } = request.headers;
  const hasBody = passed !== undefined && (coding !== undefined || (length !== undefined && length !== '0'));
  // With some methods Node sends a body without its length as it is, and it would be read as the next request. Clients may have their length left out.
  if (hasBody && !upstream.hasHeader('content-length')) upstream.setHeader('transfer-encoding', 'chunked');
  const abandon = (): void => void upstream.destroy();
  signal.addEventListener('abort', abandon, { once: true });
  // A client that stops reading a followed log must not leave the provider's end open.
  response.once('close', abandon);
  try {
    await new Promise<void>((resolve, reject) => {
      upstream.once('error', (error) => (response.headersSent || response.destroyed ? resolve() : reject(error)));
      upstream.once('response', (answer) => {
        passed?.answered(answer.statusCode ?? 502);
        const headers = endToEnd(answer.headers);
        // By its length, too, a reader knows the end together with the last piece.
        const { 'content-length': _, ...withoutLength } = headers;
        response.writeHead(answer.statusCode ?? 502, passed === undefined ? withoutLength : headers);
        response.flushHeaders();
        answer.once('error', () => response.destroy());
        answer.once('close', () => {
          if (!answer.complete) response.destroy();
          resolve();
        });
        passBody(answer, response);
      });
      upstream.setTimeout(0);
      if (hasBody) request.pipe(upstream);
      else upstream.end();
    });
  } finally {
    signal.removeEventListener('abort', abandon);
    response.off('close', abandon);
  }
}

interface Socketed extends Duplex {
  setTimeout?(ms: number, callback?: () => void): unknown;
  setKeepAlive?(enable: boolean, ms: number): unknown;
  setNoDelay?(on: boolean): unknown;
  /** Destroys once what was written has gone out. */
  destroySoon?(): void;
}

/** Joins two raw connections until both have ended. A half that ends leaves the other some time to finish; an error ends both. */
export function join(a: Socketed, b: Socketed): Promise<void> {
  return new Promise((resolve) => {
    let open = 2;
    const closeBoth = (): void => {
      a.destroy();
      b.destroy();
    };
    const linger = (): void => {
      for (const socket of [a, b]) if (!socket.destroyed) socket.setTimeout?.(lingerMs, closeBoth);
    };
    const pass = (from: Socketed, to: Socketed): void => {
      from.setTimeout?.(0);
      from.setKeepAlive?.(true, keepAliveMs);
      from.setNoDelay?.(true);
      from.on('error', closeBoth);
      from.once('end', linger);
      from.once('close', () => {
        open--;
        if (open === 0) resolve();
        else {
          // After a proper end the pipe has ended the other side too; after a break it has not.
          if (!from.readableEnded) to.destroySoon === undefined ? to.destroy() : to.destroySoon();
          linger();
        }
      });
      from.pipe(to);
    };
    pass(a, b);
    pass(b, a);
  });
}

function statusLine(answer: IncomingMessage): string {
  const lines = [`HTTP/1.1 ${answer.statusCode} ${answer.statusMessage ?? ''}`];
  for (let i = 0; i + 1 < answer.rawHeaders.length; i += 2)
    lines.push(`${answer.rawHeaders[i]}: ${answer.rawHeaders[i + 1]}`);
  return `${lines.join('\r\n')}\r\n\r\n`;
}

export interface UpgradeRequest {
  readonly request: IncomingMessage;
  readonly client: Socketed;
  readonly head: Buffer;
  readonly passed?: Passed;
}

/** Exec, attach and port-forward, over SPDY or WebSocket alike. Rejects when the provider cannot be asked; then nothing was written. */
export async function passUpgrade(
  connection: ClusterConnection,
  path: string,
  { request, client, head, passed }: UpgradeRequest,
  signal: AbortSignal,
  answerMs = longestAnswerMs,
): Promise<void> {
  await connection.authorize();
  if (signal.aborted || client.destroyed) return;
  const headers = { ...passed?.headers, ...upgradeHeaders(request.headers, request.headersDistinct) };
  const { method = 'POST' } = request;
  const upstream = openRequest(connection, { method, path, headers, pooled: false });
  let provider: Socketed | undefined;
  const abandon = (): void => {
    upstream.destroy();
    provider?.destroy();
    client.destroy();
  };
  const giveUp = (): void => void upstream.destroy(new Error('the client went away'));
  signal.addEventListener('abort', abandon, { once: true });
  client.once('close', giveUp);
  try {
    await new Promise<void>((resolve, reject) => {
      upstream.once('error', reject);
      upstream.once('response', (answer) => {
        passed?.answered(answer.statusCode ?? 502);
        refuse(answer, client).then(resolve, reject);
      });
      upstream.once('upgrade', (answer, socket: Socketed, first) => {
        passed?.answered(answer.statusCode ?? 101);
        provider = socket;
        client.off('close', giveUp);
        upstream.off('error', reject);
        upstream.on('error', () => socket.destroy());
        if (client.destroyed) {
          socket.destroy();
          resolve();
          return;
        }
        client.write(statusLine(answer));
        if (first.length > 0) client.write(first);
        if (head.length > 0) socket.write(head);
        join(client, socket).then(resolve, reject);
      });
      const asked = `${connection.server.origin} did not answer ${method} ${path.split('?')[0]}`;
      upstream.setTimeout(answerMs, () => upstream.destroy(new Error(`${asked} within ${answerMs / 1000} s`)));
      upstream.end();
    });
  } finally {
    signal.removeEventListener('abort', abandon);
    client.off('close', giveUp);
  }
}

/** The provider's own refusal, whole, with its length: the API server shows its message to the user. */
async function refuse(answer: IncomingMessage, client: Socketed): Promise<void> {
  const pieces: Buffer[] = [];
  let bytes = 0;
  for await (const piece of answer) {
    pieces.push(piece as Buffer);
    bytes += (piece as Buffer).length;
    if (bytes > longestRefusalBytes)
      throw new Error(`no upgrade, but an answer of more than ${longestRefusalBytes} bytes`);
  }
  const { statusCode: status = 502, statusMessage: reason = '', headers } = answer;
  lastWord(client, { status, reason, type: headers['content-type'] ?? 'text/plain', body: Buffer.concat(pieces) });
}

export interface LastWord {
  readonly status: number;
  readonly reason: string;
  readonly type: string;
  readonly body: Buffer;
}

/** An answer instead of an upgrade, after which nothing is awaited from `client`: it may keep its own side open as long as it likes. */
export function lastWord(client: Socketed, { status, reason, type, body }: LastWord): void {
  const head = `HTTP/1.1 ${status} ${reason}\r\nContent-Type: ${type}\r\nContent-Length: ${body.length}\r\nConnection: close\r\n\r\n`;
  client.end(Buffer.concat([Buffer.from(head, 'latin1'), body]));
  client.destroySoon?.();
}
