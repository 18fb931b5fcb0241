/**
 * A pool of keep-alive connections to one API server, for requests that are sent whole and answered whole. Node's own client costs three times as
 * much, and requests are most of what an agent does. Watches and upgrades, which are few and long, use Node's client.
 */
import type * as http from 'node:http';
import net from 'node:net';
import type { Duplex } from 'node:stream';
import type { AnswerBounds } from './answer-bounds.ts';
import { ResponseParser } from './response-parser.ts';
import { connectionOptions, idleSocketMs, keepAliveMs } from './tls.ts';

export interface ConnectionHandlers {
  /** A part of the answer has arrived. */
  piece(): void;
  /** Called once and last, unless `failed` is. */
  answered(answer: ResponseParser): void;
  failed(error: Error): void;
}

export interface Sending {
  /** It went over a connection that had served before: that it was reset may only mean that the server had closed it. */
  readonly reused: boolean;
  /** Breaks it off, and its connection with it: `failed` is called with `error`, unless it is over. */
  abort(error: Error): void;
}

/** A connection, and the request that uses it now. */
class PooledConnection {
  readonly #pool: ConnectionPool;
  #socket: Duplex | undefined;
  #handlers: ConnectionHandlers | undefined;
  #answer: ResponseParser;
  idleSince = 0;

  constructor(pool: ConnectionPool, handlers: ConnectionHandlers) {
    this.#pool = pool;
    this.#handlers = handlers;
    this.#answer = new ResponseParser(pool.bounds);
  }

  connected(socket: Duplex, text: string): void {
    if (this.#handlers === undefined) {
      quietly(socket).destroy();
      return;
    }
    this.#socket = socket;
    if (socket instanceof net.Socket) socket.setNoDelay(true).setKeepAlive(true, keepAliveMs);
    socket.on('data', (piece: Buffer) => this.#received(piece));
    // Not `once`: a socket may fail again after it was given up, and an error without a listener ends the process.
    socket.on('error', (error) => this.abort(error));
    socket.on('end', () => this.#ended());
    socket.on('close', () => this.#ended());
    socket.write(text);
  }

  send(text: string, handlers: ConnectionHandlers): void {
    this.#handlers = handlers;
    this.#answer = new ResponseParser(this.#pool.bounds);
    if (this.#socket instanceof net.Socket) this.#socket.ref();
    this.#socket?.write(text);
  }

  isUsable(): boolean {
    return this.#socket?.destroyed === false && this.#socket.writable;
  }

  /** With `only`: does nothing unless that request uses the connection. */
  abort(error: Error, only?: ConnectionHandlers): void {
    const handlers = this.#handlers;
    if (only !== undefined && handlers !== only) return;
    this.#handlers = undefined;
    this.#answer.release();
    this.#pool.dropped(this);
    this.#socket?.destroy();
    handlers?.failed(error);
  }

  #received(piece: Buffer): void {
    try {
      if (this.#handlers === undefined) throw new Error('the server sent data without a request');
      this.#answer.push(piece);
      this.#handlers.piece();
      if (this.#answer.isComplete) this.#finish();
    } catch (error) {
      this.abort(error as Error);
    }
  }

  #ended(): void {
    if (this.#handlers === undefined || !this.#answer.end()) this.abort(new Error('the answer broke off'));
    else this.#finish();
  }

  #finish(): void {
    const [handlers, answer] = [this.#handlers, this.#answer];
    this.#handlers = undefined;
    if (!answer.keepsOpen) this.#socket?.destroy();
    else {
      // An idle connection does not keep the process running.
      if (this.#socket instanceof net.Socket) this.#socket.unref();
      this.#pool.freed(this);
    }
    try {
      handlers?.answered(answer);
    } finally {
      answer.release();
    }
  }
}

const sending = (connection: PooledConnection, handlers: ConnectionHandlers, reused: boolean): Sending => ({
  reused,
  abort: (error) => connection.abort(error, handlers),
});

const quietly = (socket: Duplex): Duplex => socket.on('error', () => undefined);

export class ConnectionPool {
  readonly #agent: http.Agent;
  readonly #options: Readonly<Record<string, unknown>>;
  readonly #now: () => number;
  readonly bounds: AnswerBounds | undefined;
  /** Idle connections, most recently used last; those are reused first. */
  readonly #idle: PooledConnection[] = [];
  #session: Buffer | undefined;
  #closed = false;

  constructor(agent: http.Agent, server: URL, now: () => number, bounds?: AnswerBounds) {
    this.#agent = agent;
    this.bounds = bounds;
    this.#now = now;
    this.#options = connectionOptions(agent, server);
  }

  /** `text` is the whole request. */
  send(text: string, handlers: ConnectionHandlers): Sending {
    const oldest = this.#now() - idleSocketMs;
    for (let connection = this.#idle.pop(); connection !== undefined; connection = this.#idle.pop()) {
      if (connection.idleSince > oldest && connection.isUsable()) {
        connection.send(text, handlers);
        return sending(connection, handlers, true);
      }
      connection.abort(new Error('idle for too long'));
    }
    return this.#open(text, handlers);
  }

  freed(connection: PooledConnection): void {
    if (this.#closed) {
      connection.abort(new Error('closed'));
      return;
    }
    connection.idleSince = this.#now();
    this.#idle.push(connection);
    const oldest = connection.idleSince - idleSocketMs;
    for (let [first] = this.#idle; first !== undefined && first.idleSince <= oldest; [first] = this.#idle)
      first.abort(new Error('idle for too long'));
  }

  dropped(connection: PooledConnection): void {
    const at = this.#idle.indexOf(connection);
    if (at >= 0) this.#idle.splice(at, 1);
  }

  /** Requests that are under way go on. */
  dropIdle(): void {
    for (const connection of [...this.#idle]) connection.abort(new Error('given up'));
  }

  close(): void {
    this.#closed = true;
    this.dropIdle();
  }

  #open(text: string, handlers: ConnectionHandlers): Sending {
    const connection = new PooledConnection(this, handlers);
    let has = false;
    const done = (error: Error | null, socket?: Duplex): void => {
      if (has) return;
      has = true;
      if (error !== null || socket === undefined) {
        connection.abort(error ?? new Error('no connection'));
        return;
      }
      // Kept for resumption, which makes the next handshake short.
      socket.on('session', (session: Buffer) => {
        this.#session = session;
      });
      socket.once('error', () => {
        this.#session = undefined;
      });
      connection.connected(socket, text);
    };
    const session = this.#session === undefined ? {} : { session: this.#session };
    const create = this.#agent.createConnection.bind(this.#agent) as (
      options: object,
      done: (error: Error | null, socket?: Duplex) => void,
    ) => Duplex | null | undefined;
    try {
      const socket = create({ ...this.#options, ...session }, done);
      if (socket) done(null, socket);
    } catch (error) {
      done(error as Error);
    }
    return sending(connection, handlers, false);
  }
}

const pools = new WeakMap<http.Agent, ConnectionPool>();

/** The connections that belong to an agent: of its making, and closed with it. */
export function connectionPoolOf(
  agent: http.Agent,
  server: URL,
  now: () => number,
  bounds?: AnswerBounds,
): ConnectionPool {
  const known = pools.get(agent);
  if (known !== undefined) return known;
  const made = new ConnectionPool(agent, server, now, bounds);
  pools.set(agent, made);
  const destroy = agent.destroy.bind(agent);
  agent.destroy = () => {
    made.close();
    destroy();
  };
  return made;
}

/** Of those that are known by now. */
export const dropIdleConnections = (agent: http.Agent): void => pools.get(agent)?.dropIdle();
