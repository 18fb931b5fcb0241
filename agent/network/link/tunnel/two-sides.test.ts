/** Both gateways of a link, each with the real loop and a model of WireGuard, over a network that loses, delays and lets through one way only. */
import fc from 'fast-check';
import { afterEach, describe, expect, test } from 'vitest';
import { type LinkReport, runLink } from '#agent/network/link/tunnel/run.ts';
import { type Packet, WireGuardEnd } from '#agent/testing/wireguard.ts';
import { ManualClock } from '#shared/ports/clock.ts';
import { silentLog } from '#shared/ports/log.ts';

interface Path {
  /** One way. */
  readonly delayMs: number;
  readonly jitterMs: number;
  /** Until then packets are lost, of a hundred so many. */
  readonly lossyUntilMs: number;
  readonly lossPercent: number;
  readonly seed: number;
}

interface Case extends Path {
  /** Of each candidate whether packets arrive there; the client dials the server's. */
  readonly server: readonly boolean[];
  readonly client: readonly boolean[];
  /** When each side begins. */
  readonly serverAt: number;
  readonly clientAt: number;
  readonly answersPings?: boolean;
  /** As before: an attempt takes the peer out and puts it in again. */
  readonly replaces?: boolean;
}

type Name = 'client' | 'server';
const stepMs = 10;
const other = { client: 'server', server: 'client' } as const;

/** Numbers from 0 up to 1, the same ones for the same seed. */
function numbers(seed: number): () => number {
  let state = seed >>> 0;
  return () => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return state / 2 ** 32;
  };
}

class TwoSides {
  readonly clock = new ManualClock();
  readonly attempts: Record<Name, number[]> = { client: [], server: [] };
  readonly reports: Record<Name, LinkReport | undefined> = { client: undefined, server: undefined };
  /** Sessions of which an attempt made that the peer's packets are no longer taken. */
  readonly destroyed: string[] = [];
  readonly #case: Case;
  readonly #chance: () => number;
  readonly #begun: number;
  readonly #ends: Record<Name, WireGuardEnd>;
  readonly #hear: Partial<Record<Name, (timeStamp: string, bytes: number) => void>> = {};
  readonly #under: { at: number; run: () => void }[] = [];
  readonly #stop = new AbortController();
  readonly #running: Promise<void>[] = [];
  readonly #started = new Set<Name>();

  constructor(it: Case) {
    this.#case = it;
    this.#chance = numbers(it.seed);
    this.#begun = this.clock.now();
    this.#ends = { client: this.#end('client'), server: this.#end('server') };
  }

  get ms(): number {
    return this.clock.now() - this.#begun;
  }

  get bothConnected(): boolean {
    return this.reports.client?.value === 'Connected' && this.reports.server?.value === 'Connected';
  }

  #end(name: Name): WireGuardEnd {
    return new WireGuardEnd({
      name,
      now: () => this.clock.now(),
      transmit: (to, packet) => this.#transmit(name, to, packet),
      deliver: (payload) => {
        const [what, timeStamp = ''] = payload.split(' ');
        if (what === 'pong') this.#hear[name]?.(timeStamp, 80);
        else if (this.#case.answersPings !== false) this.#ends[name].send(`pong ${timeStamp}`);
      },
    });
  }

  /** An endpoint is a candidate's number, or `heard`: from where the peer's packets come, and where it can be answered. */
  #transmit(from: Name, to: string, packet: Packet): void {
    const it = this.#case;
    const peer = other[from];
    const arrives = to === 'heard' || it[peer][Number(to.slice(2))] === true;
    const lost = this.ms < it.lossyUntilMs && this.#chance() * 100 < it.lossPercent;
    const delay = it.delayMs + Math.floor(this.#chance() * it.jitterMs);
    if (!arrives || lost) return;
    this.#under.push({ at: this.clock.now() + delay, run: () => this.#ends[peer].receive('heard', packet) });
  }

  #start(name: Name): void {
    const it = this.#case;
    const end = this.#ends[name];
    const work = runLink(
      {
        clock: this.clock,
        log: silentLog,
        resolve: async () => [],
        ping: (timeStamp, bytes) => {
          if (bytes === undefined) end.send(`ping ${timeStamp}`);
        },
        onPong: (listener) => {
          this.#hear[name] = listener;
          return () => undefined;
        },
        look: async () => ({
          receivedBytes: end.receivedBytes,
          ...(end.endpoint === undefined ? {} : { endpoint: end.endpoint }),
          ...(end.handshakeAt === undefined ? {} : { handshakeAt: end.handshakeAt }),
        }),
        dial: async (endpoint) => {
          const peer = this.#ends[other[name]];
          const made = end.accepts.filter((session) => peer.accepts.includes(session));
          this.attempts[name].push(this.ms);
          if (it.replaces === true) end.replace(endpoint);
          else end.shakeHands(endpoint);
          this.destroyed.push(...made.filter((session) => !end.accepts.includes(session)));
        },
        candidates: () => it[other[name]].map((_, number) => `0:${number}`),
        isDialled: name === 'server',
        size: { configured: () => 0, inEffect: () => 0, measuring: async () => undefined },
        report: (report) => {
          this.reports[name] = report;
        },
      },
      this.#stop.signal,
    );
    this.#running.push(work);
  }

  /** Until the condition holds; answers with the time, or undefined when it did not come to that. */
  async until(holds: () => boolean, limitMs: number): Promise<number | undefined> {
    for (const endMs = this.ms + limitMs; this.ms < endMs; ) {
      for (const name of ['client', 'server'] as const) {
        if (this.#started.has(name) || this.ms < this.#case[`${name}At`]) continue;
        this.#started.add(name);
        this.#start(name);
      }
      this.clock.advance(stepMs);
      const due = this.#under.filter(({ at }) => at <= this.clock.now());
      for (const packet of due) {
        this.#under.splice(this.#under.indexOf(packet), 1);
        packet.run();
      }
      for (const end of Object.values(this.#ends)) end.tick();
      await new Promise((resolve) => setImmediate(resolve));
      if (holds()) return this.ms;
    }
    return undefined;
  }

  async close(): Promise<void> {
    this.#stop.abort();
    await Promise.all(this.#running);
  }
}

let sides: TwoSides | undefined;
afterEach(() => sides?.close());

const quiet: Case = {
  delayMs: 5,
  jitterMs: 0,
  lossyUntilMs: 0,
  lossPercent: 0,
  seed: 1,
  server: [true],
  client: [false],
  serverAt: 0,
  clientAt: 0,
};
const someReachable = fc
  .array(fc.boolean(), { minLength: 1, maxLength: 3 })
  .filter((list) => list.some((reachable) => reachable));
const cases = (lossy: boolean): fc.Arbitrary<Case> =>
  fc.record({
    delayMs: fc.integer({ min: 1, max: 150 }),
    jitterMs: fc.integer({ min: 0, max: 40 }),
    lossyUntilMs: lossy ? fc.integer({ min: 0, max: 8_000 }) : fc.constant(0),
    lossPercent: fc.integer({ min: 1, max: 100 }),
    seed: fc.nat(),
    server: someReachable,
    client: fc.array(fc.boolean(), { maxLength: 3 }),
    serverAt: fc.integer({ min: 0, max: 3_000 }),
    clientAt: fc.integer({ min: 0, max: 3_000 }),
  });

/** Holds for every case, and tells the times of the attempts when it does not. */
async function connected(it: Case, withinMs: number, steadyMs: number): Promise<number> {
  const world = new TwoSides(it);
  try {
    const at = await world.until(() => world.bothConnected, withinMs);
    expect({ connected: at !== undefined, destroyed: world.destroyed, attempts: world.attempts }).toEqual({
      connected: true,
      destroyed: [],
      attempts: expect.anything(),
    });
    const before = structuredClone(world.attempts);
    await world.until(() => false, steadyMs);
    expect([world.bothConnected, world.destroyed]).toEqual([true, []]);
    if (it.lossyUntilMs < (at ?? 0)) expect(world.attempts).toEqual(before);
    return at ?? Number.NaN;
  } finally {
    await world.close();
  }
}

describe('both sides of a link', () => {
  test('are Connected within ten seconds of the later one, for every subset of reachable endpoints of the dialling side, and nothing is dialled after that', async () => {
    await fc.assert(
      fc.asyncProperty(cases(false), async (it) => {
        await connected(it, Math.max(it.serverAt, it.clientAt) + 10_000, 5_000);
      }),
      { numRuns: 100 },
    );
  });

  test('are Connected soon after a time of any loss, and no session made on the way was ever destroyed', async () => {
    await fc.assert(
      fc.asyncProperty(cases(true), async (it) => {
        await connected(it, Math.max(it.serverAt, it.clientAt, it.lossyUntilMs) + 20_000, 5_000);
      }),
      { numRuns: 100 },
    );
  });

  test('would lose sessions if an attempt took the peer out and put it in again', async () => {
    const lossy: Case = { ...quiet, delayMs: 60, lossyUntilMs: 60_000, lossPercent: 50 };
    const destroyed = async (replaces: boolean): Promise<number> => {
      const world = new TwoSides({ ...lossy, replaces });
      await world.until(() => false, 60_000);
      await world.close();
      return world.destroyed.length;
    };
    expect(await destroyed(false)).toBe(0);
    expect(await destroyed(true)).toBeGreaterThan(0);
  });

  test('of which one answers no pings come to rest with the session that they have', async () => {
    sides = new TwoSides({ ...quiet, answersPings: false });
    await sides.until(() => false, 15_000);
    const before = structuredClone(sides.attempts);
    await sides.until(() => false, 60_000);
    expect(sides.attempts).toEqual(before);
    expect(sides.destroyed).toEqual([]);
  });
});
