/** A pool of servers that are dear to start: a returned one is cleaned and used again, and ended when it cannot be cleaned. */

export interface PoolPorts<S> {
  start(): Promise<S>;
  /** Brings a returned server back to how it was when it had started. Rejects when it cannot: the server is ended then. */
  clean(server: S): Promise<void>;
  /** Before a clean server is leased again: what cannot be cleaned, but started afresh. */
  renew(server: S): Promise<void>;
  end(server: S): Promise<void>;
  log(line: string): void;
}

export interface Lease<S> {
  readonly server: S;
  /** Resolves when the server is clean or ended; the next lease waits for the cleaning, its holder does not have to. */
  release(): Promise<void>;
}

export interface PoolCounts {
  /** Leased at present. */
  readonly held: number;
  readonly started: number;
  readonly leased: number;
  /** Ended because they could not be cleaned. */
  readonly discarded: number;
}

/**
 * Has no upper bound: a test that holds one server and waits for a second one must not wait for a test that does the same. There are as many servers
 * as tests that run at the same time hold together.
 */
export class Pool<S> {
  readonly #ports: PoolPorts<S>;
  readonly #all = new Set<S>();
  readonly #idle: S[] = [];
  readonly #waiting: ((server: S | undefined) => void)[] = [];
  readonly #cleanings = new Set<Promise<void>>();
  readonly #counts = { started: 0, leased: 0, discarded: 0 };
  #held = 0;
  #closed = false;

  constructor(ports: PoolPorts<S>) {
    this.#ports = ports;
  }

  get counts(): PoolCounts {
    return { ...this.#counts, held: this.#held };
  }

  async lease(): Promise<Lease<S>> {
    if (this.#closed) throw new Error('the pool is closed');
    const used = this.#idle.pop() ?? (await this.#soonClean());
    if (used !== undefined) await this.#ports.renew(used);
    const server = used ?? (await this.#start());
    this.#counts.leased++;
    this.#held++;
    let released: Promise<void> | undefined;
    return {
      server,
      release: () => {
        released ??= this.#takeBack(server);
        return released;
      },
    };
  }

  /** Ends every server, also those that are leased. */
  async close(): Promise<void> {
    this.#closed = true;
    for (const give of this.#waiting.splice(0)) give(undefined);
    await Promise.allSettled(this.#cleanings);
    await Promise.all([...this.#all].map((server) => this.#end(server)));
  }

  /** A server that is being cleaned and that no earlier lease waits for: cleaning is several times faster than starting. */
  async #soonClean(): Promise<S | undefined> {
    if (this.#cleanings.size <= this.#waiting.length) return undefined;
    return new Promise((resolve) => this.#waiting.push(resolve));
  }

  async #start(): Promise<S> {
    const server = await this.#ports.start();
    this.#counts.started++;
    this.#all.add(server);
    if (!this.#closed) return server;
    await this.#end(server);
    throw new Error('the pool was closed meanwhile');
  }

  #takeBack(server: S): Promise<void> {
    this.#held--;
    const cleaning = this.#clean(server).finally(() => this.#cleanings.delete(cleaning));
    this.#cleanings.add(cleaning);
    return cleaning;
  }

  async #clean(server: S): Promise<void> {
    if (this.#closed) return;
    try {
      await this.#ports.clean(server);
    } catch (error) {
      this.#counts.discarded++;
      this.#ports.log(`a server is ended because it cannot be cleaned: ${(error as Error).message}`);
      await this.#end(server);
      this.#waiting.shift()?.(undefined);
      return;
    }
    const waiting = this.#waiting.shift();
    if (waiting === undefined) this.#idle.push(server);
    else waiting(server);
  }

  /** Never rejects: nothing waits for a cleaning, and in vitest's main process an unhandled rejection ends the whole run without a report. */
  async #end(server: S): Promise<void> {
    if (!this.#all.delete(server)) return;
    try {
      await this.#ports.end(server);
    } catch (error) {
      this.#ports.log(`a server could not be ended: ${(error as Error).message}`);
    }
  }
}
