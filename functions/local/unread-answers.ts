/**
 * Bounds what clients make this process hold that ask and do not read. Requests that a client pipelines are begun one after the other, each when the answer
 * before it was taken, so a connection holds one answer; and of all connections together, those that have had something left to take for longest are
 * closed when what they hold is more than a limit, beginning with the client that holds most.
 */
import type { IncomingMessage, RequestListener } from 'node:http';
import type { Socket } from 'node:net';
import { performance } from 'node:perf_hooks';
import { limitKey } from '#shared/domain/socket-address.ts';
import { heldFor } from './answer-pieces.ts';

export interface UnreadAnswersOptions {
  /** Bytes of answers, of all connections; 64 MiB unless told. */
  readonly mostUnread?: number;
  /** Of the client that asks: the address of the connection unless told, which behind a proxy is that of all clients. */
  readonly clientOf?: (message: IncomingMessage) => string;
  /** Milliseconds. */
  readonly now?: () => number;
}

const mostUnreadBytes = 64 << 20;
/** Requests of one connection that wait for the answers before them. Beyond it the connection is closed. */
export const mostPipelined = 16;
/** A client that reads has this long to take what was just sent. */
const patienceMs = 2_000;
/** Counting takes time by the number of connections. */
const countEveryMs = 100;

interface Open {
  /** Of requests that have no answer yet, or one that was not taken: what is to be told when it was, or never will be. */
  readonly requests: Set<() => void>;
  /** Since when some of an answer was seen to wait. */
  waitsSince?: number;
  /** That asked last. */
  client: string;
  /** Resolves when the answer to the newest request was taken. */
  last: Promise<void>;
}

export function boundUnreadAnswers(otherwise: RequestListener, options: UnreadAnswersOptions = {}): RequestListener {
  const {
    mostUnread = mostUnreadBytes,
    clientOf = ({ socket }) => socket.remoteAddress ?? '',
    now = () => performance.now(),
  } = options;
  const connections = new Map<Socket, Open>();
  let countedAt = Number.NEGATIVE_INFINITY;

  function closeSilent(): void {
    const at = now();
    if (at - countedAt < countEveryMs) return;
    countedAt = at;
    let unread = 0;
    const byClient = new Map<string, { bytes: number; readonly sockets: Socket[] }>();
    for (const [socket, open] of connections) {
      const bytes = heldFor(socket);
      if (bytes === 0) delete open.waitsSince;
      else open.waitsSince ??= at;
      unread += bytes;
      if (open.waitsSince === undefined || at - open.waitsSince < patienceMs) continue;
      const those = byClient.get(open.client) ?? { bytes: 0, sockets: [] };
      byClient.set(open.client, those);
      those.bytes += bytes;
      those.sockets.push(socket);
    }
    if (unread <= mostUnread) return;
    const since = (socket: Socket): number => connections.get(socket)?.waitsSince ?? at;
    for (const { sockets } of [...byClient.values()].sort((a, b) => b.bytes - a.bytes)) {
      for (const socket of sockets.sort((a, b) => since(a) - since(b))) {
        if (unread <= mostUnread) return;
        unread -= heldFor(socket);
        socket.destroy();
      }
    }
  }

  function opened(message: IncomingMessage): Open {
    const { socket } = message;
    const client = limitKey(clientOf(message));
    const known = connections.get(socket);
    if (known !== undefined) return Object.assign(known, { client });
    const open: Open = { requests: new Set(), client, last: Promise.resolve() };
    connections.set(socket, open);
    // A response whose turn on its connection has not come hears nothing of the connection's end.
    socket.once('close', () => {
      connections.delete(socket);
      for (const end of open.requests) end();
    });
    return open;
  }

  return (request, response) => {
    const { socket } = request;
    closeSilent();
    const open = opened(request);
    const { last } = open;
    if (open.requests.size >= mostPipelined) return void socket.destroy();
    open.last = new Promise<void>((resolve) => {
      const end = (): void => {
        open.requests.delete(end);
        resolve();
      };
      open.requests.add(end);
      response.once('close', end);
    });
    if (open.requests.size === 1) return otherwise(request, response);
    void last.then(() => {
      if (!socket.destroyed) otherwise(request, response);
    });
  };
}
