/**
 * A pool of keep-alive connections to one API server, for requests that are sent whole and answered whole. Node's own client costs three times as
 * much, and requests are most of what an agent does. Watches and upgrades, which are few and long, use Node's client.
 */
import type * as http from 'node:http';
import net from 'node:net';
import type { Duplex } from 'node:stream';
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
class Wire {
  readonly #pool: ConnectionPool;
  #socket: Duplex | undefined;
  #ears: ConnectionHandlers | undefined;
  #answer = new ResponseParser();
  idleSince = 0;

  constructor(pool: ConnectionPool, ears: ConnectionHandlers) {
    this.#pool = pool;
    this.#ears = ears;
  }

  connected(socket: Duplex, text: string): void {
    if (this.#ears === undefined) {
      quietly(socket).destroy();
      return;
    }
    this.#socket = socket;
    if (socket instanceof net.Socket) socket.setNoDelay(true).setKeepAlive(true, keepAliveMs);
    socket.on('data', (piece: Buffer) => this.#heard(piece));
    // Not `once`: a socket may fail again after it was given up, and an error without a listener ends the process.
    socket.on('error', (error) => this.abort(error));
    socket.on('end', () => this.#ended());
    socket.on('close', () => this.#ended());
    socket.write(text);
  }

  send(text: string, ears: ConnectionHandlers): void {
    this.#ears = ears;
    this.#answer = new ResponseParser();
    if (this.#socket instanceof net.Socket) this.#socket.ref();
    this.#socket?.write(text);
  }

  isUsable(): boolean {
    return this.#socket?.destroyed === false && this.#socket.writable;
  }

  /** With `only`: does nothing unless that request uses the connection. */
  abort(error: Error, only?: ConnectionHandlers): void {
    const ears = this.#ears;
    if (only !== undefined && ears !== only) return;
    this.#ears = undefined;
    this.#pool.dropped(this);
    this.#socket?.destroy();
    ears?.failed(error);
  }

  #heard(piece: Buffer): void {
    try {
      if (this.#ears === undefined) throw new Error('the server sent data without a request');
      this.#answer.push(piece);
      this.#ears.piece();
      if (this.#answer.isComplete) this.#finish();
    } catch (error) {
      this.abort(error as Error);
    }
  }

  #ended(): void {
    if (this.#ears === undefined || !this.#answer.end()) this.abort(new Error('the answer broke off'));
    else this.#finish();
  }

  #finish(): void {
    const [ears, answer] = [this.#ears, this.#answer];
    this.#ears = undefined;
    if (!answer.keepsOpen) this.#socket?.destroy();
    else {
      // An idle connection does not keep the process running.
      if (this.#socket instanceof net.Socket) this.#socket.unref();
      this.#pool.freed(this);
    }
    ears?.answered(answer);
  }
}

const sending = (wire: Wire, ears: ConnectionHandlers, reused: boolean): Sending => ({
  reused,
  abort: (error) => wire.abort(error, ears),
});

const quietly = (socket: Duplex): Duplex => socket.on('error', () => undefined);

export class ConnectionPool {
  readonly #agent: http.Agent;
  readonly #options: Readonly<Record<string, unknown>>;
  readonly #now: () => number;
  /** Idle connections, most recently used last; those are reused first. */
  readonly #idle: Wire[] = [];
  #session: Buffer | undefined;
  #closed = false;

  constructor(agent: http.Agent, server: URL, now: () => number) {
    this.#agent = agent;
    this.#now = now;
    this.#options = connectionOptions(agent, server);
  }

  /** `text` is the whole request. */
  send(text: string, ears: ConnectionHandlers): Sending {
    const oldest = this.#now() - idleSocketMs;
    for (let wire = this.#idle.pop(); wire !== undefined; wire = this.#idle.pop()) {
      if (wire.idleSince > oldest && wire.isUsable()) {
        wire.send(text, ears);
        return sending(wire, ears, true);
      }
      wire.abort(new Error('idle for too long'));
    }
    return this.#open(text, ears);
  }

  freed(wire: Wire): void {
    if (this.#closed) {
      wire.abort(new Error('closed'));
      return;
    }
    wire.idleSince = this.#now();
    this.#idle.push(wire);
    const oldest = wire.idleSince - idleSocketMs;
    for (let [first] = this.#idle; first !== undefined && first.idleSince <= oldest; [first] = this.#idle)
      first.abort(new Error('idle for too long'));
  }

  dropped(wire: Wire): void {
    const at = this.#idle.indexOf(wire);
    if (at >= 0) this.#idle.splice(at, 1);
  }

  /** Requests that are under way go on. */
  dropIdle(): void {
    for (const wire of [...this.#idle]) wire.abort(new Error('given up'));
  }

  close(): void {
    this.#closed = true;
    this.dropIdle();
  }

  #open(text: string, ears: ConnectionHandlers): Sending {
    const wire = new Wire(this, ears);
    let has = false;
    const done = (error: Error | null, socket?: Duplex): void => {
      if (has) return;
      has = true;
      if (error !== null || socket === undefined) {
        wire.abort(error ?? new Error('no connection'));
        return;
      }
      // Kept for resumption, which makes the next handshake short.
      socket.on('session', (session: Buffer) => {
        this.#session = session;
      });
      socket.once('error', () => {
        this.#session = undefined;
      });
      wire.connected(socket, text);
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
    return sending(wire, ears, false);
  }
}

const pools = new WeakMap<http.Agent, ConnectionPool>();

/** The connections that belong to an agent: of its making, and closed with it. */
export function wiresOf(agent: http.Agent, server: URL, now: () => number): ConnectionPool {
  const known = pools.get(agent);
  if (known !== undefined) return known;
  const made = new ConnectionPool(agent, server, now);
  pools.set(agent, made);
  const destroy = agent.destroy.bind(agent);
  agent.destroy = () => {
    made.close();
    destroy();
  };
  return made;
}

/** Of those that are known by now. */
export const dropIdleWires = (agent: http.Agent): void => pools.get(agent)?.dropIdle();
