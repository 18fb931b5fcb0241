import { afterEach, beforeEach, expect, test } from 'vitest';
import { ManualClock } from '#shared/ports/clock.ts';
import { silentLog } from '#shared/ports/log.ts';
import { type LinkReport, runLink, type TunnelSession } from './run.ts';

/** A peer that is reachable at some endpoints and answers pings up to a size; `runLink` keeps the link to it. */
class World {
  readonly clock = new ManualClock();
  readonly stop = new AbortController();
  readonly reports: LinkReport[] = [];
  readonly dialled: string[] = [];
  reachable = new Set<string>();
  largest = 1500;
  addresses: Record<string, readonly string[]> = {};
  candidates: readonly string[] = ['192.0.2.1:1'];
  configured = 1340;
  /** What the precise clock moves by from one reading to the next. */
  preciseMs = 0;
  #precise = 0;
  session: TunnelSession | undefined = { receivedBytes: 0 };
  /** Present: the port may be changed, and this is what happens then. */
  moved: (() => void) | undefined;
  #pong: ((timeStamp: string, bytes: number) => void) | undefined;
  #done: Promise<void> | undefined;

  start(): void {
    this.#done = runLink(
      {
        clock: this.clock,
        preciseNow: () => {
          this.#precise += this.preciseMs;
          return this.#precise;
        },
        log: silentLog,
        resolve: async (host) => this.addresses[host] ?? [],
        ping: (timeStamp, bytes = 80) => {
          const at = this.session?.endpoint;
          if (at === undefined || !this.reachable.has(at) || bytes + 28 > this.largest) return;
          queueMicrotask(() => {
            this.session = {
              endpoint: at,
              receivedBytes: (this.session?.receivedBytes ?? 0) + 100,
              handshakeAt: this.clock.now(),
            };
            this.#pong?.(timeStamp, bytes);
          });
        },
        onPong: (listener) => {
          this.#pong = listener;
          return () => undefined;
        },
        look: async () => this.session,
        dial: async (endpoint) => {
          this.dialled.push(endpoint);
          this.session = { ...this.session, endpoint, receivedBytes: this.session?.receivedBytes ?? 0 };
        },
        candidates: () => this.candidates,
        ...(this.moved && {
          source: { now: () => 'own' as const, move: async () => this.moved?.(), random: () => 0 },
        }),
        size: {
          configured: () => this.configured,
          inEffect: () => this.last()?.mtu ?? this.configured,
          measuring: async () => undefined,
        },
        report: (report) => this.reports.push(report),
      },
      this.stop.signal,
    );
  }

  last(): LinkReport | undefined {
    return this.reports.at(-1);
  }

  /** Lets time pass in small steps, and everything happen that follows from it. */
  async pass(ms: number): Promise<void> {
    for (let left = ms; left > 0; left -= 50) {
      this.clock.advance(50);
      await new Promise((resolve) => setImmediate(resolve));
    }
  }

  async end(): Promise<void> {
    this.stop.abort();
    await this.#done;
  }
}

let world: World;
beforeEach(() => {
  world = new World();
});
afterEach(() => world.end());

test('a reachable candidate is found, the link is Connected, and its path measured with padded pings', async () => {
  world.candidates = ['192.0.2.1:1', '192.0.2.2:2'];
  world.reachable = new Set(['192.0.2.2:2']);
  world.largest = 1290;
  world.start();
  await world.pass(30_000);
  expect(world.dialled).toEqual(['192.0.2.1:1', '192.0.2.2:2']);
  expect(world.last()).toMatchObject({ value: 'Connected', peerEndpoint: '192.0.2.2:2', mtu: 1290 });
});

test('a peer that moves to another address of its name is followed within 5 s, without anybody’s help', async () => {
  world.candidates = ['gw.example.com:7'];
  world.addresses = { 'gw.example.com': ['192.0.2.1'] };
  world.reachable = new Set(['192.0.2.1:7']);
  world.start();
  await world.pass(5_000);
  expect(world.last()?.value).toBe('Connected');
  world.reachable = new Set(['192.0.2.9:7']);
  world.addresses = { 'gw.example.com': ['192.0.2.9'] };
  await world.pass(5_000);
  expect(world.last()?.peerEndpoint).toBe('192.0.2.9:7');
  expect(world.dialled.at(-1)).toBe('192.0.2.9:7');
});

test('a path that shrinks under large packets only is noticed and measured again', async () => {
  world.reachable = new Set(['192.0.2.1:1']);
  world.start();
  await world.pass(5_000);
  expect(world.last()?.mtu).toBe(1340);
  world.largest = 1250;
  await world.pass(40_000);
  expect(world.last()).toMatchObject({ value: 'Connected', mtu: 1250 });
});

test('a path that recovers is used again within ten minutes', async () => {
  world.reachable = new Set(['192.0.2.1:1']);
  world.largest = 1250;
  world.start();
  await world.pass(30_000);
  expect(world.last()?.mtu).toBe(1250);
  world.largest = 1500;
  await world.pass(11 * 60_000);
  expect(world.last()?.mtu).toBe(1340);
});

test('ten seconds of silence are an Error, while dialling goes on; then it recovers by itself', async () => {
  world.reachable = new Set(['192.0.2.1:1']);
  world.start();
  await world.pass(3_000);
  world.reachable.clear();
  await world.pass(11_500);
  expect(world.last()?.value).toBe('Error');
  const attempts = world.dialled.length;
  expect(attempts).toBeGreaterThan(3);
  world.reachable.add('192.0.2.1:1');
  await world.pass(6_000);
  expect(world.last()?.value).toBe('Connected');
});

test('a handshake that the peer makes while an attempt is decided upon is seen: the peer is not dialled', async () => {
  world.start();
  await world.pass(100);
  expect(world.dialled).toHaveLength(1);
  // Just before the attempt ends, after the last regular look.
  await world.pass(390);
  world.session = { endpoint: '198.18.7.7:7', receivedBytes: 148 };
  await world.pass(500);
  expect(world.dialled).toHaveLength(1);
});

test.each([
  { shakes: true, title: 'a handshake that WireGuard makes as its port changes is not disturbed by another one' },
  { shakes: false, title: 'a port that is changed without a handshake is dialled from' },
])('$title', async ({ shakes }) => {
  let before: number | undefined;
  world.moved = () => {
    before = world.dialled.length;
    if (shakes) world.session = { ...world.session, receivedBytes: 92, handshakeAt: world.clock.now() };
  };
  world.start();
  for (let i = 0; i < 400 && before === undefined; i++) await world.pass(50);
  expect(before).toBeGreaterThan(3);
  await world.pass(150);
  expect(world.dialled).toHaveLength((before ?? 0) + (shakes ? 0 : 1));
});

test('a round trip below a millisecond is measured', async () => {
  world.reachable = new Set(['192.0.2.1:1']);
  world.preciseMs = 0.25;
  world.start();
  await world.pass(2_000);
  expect(world.last()).toMatchObject({ value: 'Connected', rttMs: 0.25 });
});
