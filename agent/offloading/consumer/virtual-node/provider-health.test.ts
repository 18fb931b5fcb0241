import { describe, expect, test } from 'vitest';
import type { KubeApi } from '#kube/model/types.ts';
import { AppError } from '#shared/errors/app-error.ts';
import { ManualClock } from '#shared/ports/clock.ts';
import { ProviderHealth } from './provider-health.ts';

const never = Number.NEGATIVE_INFINITY;
const idle = () => new Promise<void>((resolve) => setImmediate(resolve));

/** A provider whose answers the test decides, and what was said about it. */
function play({ connected = true } = {}) {
  const clock = new ManualClock(1_000_000);
  const stop = new AbortController();
  const asked: { readonly path: string; readonly at: number }[] = [];
  const looks: { readonly changed: boolean; readonly outageMs: number }[] = [];
  /** `silent` gives no answer at all, and `slow` its answer after a second, or `takesMs`. */
  const provider = {
    way: 'answers' as 'answers' | 'slow' | 'refuses' | 'silent',
    version: 'v1.36.2',
    takesMs: 1_000,
  };
  const state = { connected, awaited: false };
  const until = (signal: AbortSignal | undefined) =>
    new Promise<never>((_, reject) => signal?.addEventListener('abort', () => reject(signal.reason), { once: true }));
  const api = {
    async getPath(path: string, signal: AbortSignal) {
      asked.push({ path, at: clock.now() - 1_000_000 });
      if (provider.way === 'refuses') throw new AppError('kube_unreachable', 'connection refused');
      if (provider.way === 'silent') return until(signal);
      if (provider.way === 'slow') await clock.sleep(provider.takesMs, signal);
      return path === '/version' ? JSON.stringify({ gitVersion: provider.version }) : 'ok';
    },
  } as unknown as KubeApi;
  const health = new ProviderHealth({
    clock,
    api: () => (state.connected ? api : undefined),
    onLook: (changed, outageMs) => looks.push({ changed, outageMs }),
    isAwaited: () => state.awaited,
  });
  const running = health.run(stop.signal);
  return {
    clock,
    provider,
    state,
    health,
    asked,
    looks,
    /** `health.answered`, counted from the start. */
    answered: () => {
      const { lookedAt, since } = health.answered;
      return { lookedAt: lookedAt - 1_000_000, since: since - 1_000_000 };
    },
    /** Lets so many milliseconds pass, in small steps, with all that comes of each. */
    async pass(ms: number): Promise<void> {
      await idle();
      for (let gone = 0; gone < ms; gone += 250) {
        clock.advance(250);
        await idle();
      }
    },
    async end(): Promise<void> {
      stop.abort();
      await running;
    },
  };
}

test('a provider that answers is looked at every ten seconds, and its version read once an hour', async () => {
  const { health, asked, looks, pass, end } = play();
  await pass(30_000);
  expect(health.current).toEqual({ answers: true, version: 'v1.36.2', problem: undefined });
  expect(asked).toEqual([
    { path: '/version', at: 0 },
    { path: '/livez', at: 10_000 },
    { path: '/livez', at: 20_000 },
    { path: '/livez', at: 30_000 },
  ]);
  expect(looks.map(({ changed }) => changed)).toEqual([true, false, false, false]);
  await pass(3_600_000);
  expect(asked.filter(({ path }) => path === '/version')).toEqual([
    { path: '/version', at: 0 },
    { path: '/version', at: 3_600_000 },
  ]);
  await end();
});

test('without a connection it does not answer, and is looked at each second until there is one', async () => {
  const { health, state, looks, answered, asked, pass, end } = play({ connected: false });
  await pass(3_000);
  expect(health.current.problem).toBe('there is no connection to the provider yet');
  state.connected = true;
  await pass(1_000);
  expect(health.current.answers).toBe(true);
  expect(asked).toEqual([{ path: '/version', at: 4_000 }]);
  expect(looks.map(({ changed }) => changed)).toEqual([false, false, false, false, true]);
  // A first answer ends no outage.
  expect(answered()).toEqual({ lookedAt: 4_000, since: never });
  await end();
});

describe('an outage', () => {
  test('is looked at each second, and is as long as from the first look in vain to the first that is answered', async () => {
    const { provider, health, looks, asked, answered, pass, end } = play();
    await pass(0);
    provider.way = 'refuses';
    await pass(13_000);
    expect(health.current).toEqual({ answers: false, version: 'v1.36.2', problem: 'connection refused' });
    expect(answered()).toEqual({ lookedAt: 0, since: never });
    provider.way = 'answers';
    await pass(1_000);
    expect(asked.map(({ at }) => at)).toEqual([0, 10_000, 11_000, 12_000, 13_000, 14_000]);
    expect(looks).toEqual([
      { changed: true, outageMs: 0 },
      { changed: true, outageMs: 0 },
      { changed: false, outageMs: 0 },
      { changed: false, outageMs: 0 },
      { changed: false, outageMs: 0 },
      { changed: true, outageMs: 4_000 },
    ]);
    expect(answered()).toEqual({ lookedAt: 14_000, since: 14_000 });
    await pass(10_000);
    expect(answered()).toEqual({ lookedAt: 24_000, since: 14_000 });
    expect(looks.at(-1)).toEqual({ changed: false, outageMs: 0 });
    await end();
  });

  test('is also silence for three seconds', async () => {
    const { provider, health, looks, pass, end } = play();
    await pass(0);
    provider.way = 'silent';
    await pass(12_750);
    expect(health.current.answers).toBe(true);
    await pass(250);
    expect(health.current).toMatchObject({ answers: false, problem: 'no answer within 3 s' });
    provider.way = 'answers';
    await pass(1_000);
    // It was known to be gone for one second.
    expect(looks.at(-1)).toEqual({ changed: true, outageMs: 1_000 });
    await end();
  });

  test('ends with a look at the version, which may be another', async () => {
    const { provider, health, asked, pass, end } = play();
    await pass(0);
    provider.way = 'refuses';
    await pass(10_000);
    Object.assign(provider, { way: 'answers', version: 'v1.37.0' });
    await pass(1_000);
    expect(health.current).toEqual({ answers: true, version: 'v1.37.0', problem: undefined });
    expect(asked.at(-1)).toEqual({ path: '/version', at: 11_000 });
    await end();
  });
});

test('what counts of an answer is when it was asked for', async () => {
  const { provider, health, answered, pass, end } = play();
  await pass(0);
  provider.way = 'slow';
  await pass(10_750);
  expect(answered().lookedAt).toBe(0);
  await pass(250);
  expect(health.current.answers).toBe(true);
  expect(answered().lookedAt).toBe(10_000);
  await end();
});

describe('a provider that takes five seconds for every answer', () => {
  async function slowly() {
    const world = play();
    await world.pass(0);
    Object.assign(world.provider, { way: 'slow', takesMs: 5_000 });
    await world.pass(13_000);
    return world;
  }

  test('is silent at first, is waited for from then on, and answers', async () => {
    const { health, looks, asked, pass, end } = await slowly();
    expect(health.current).toMatchObject({ answers: false, problem: 'no answer within 3 s' });
    await pass(6_000);
    expect(health.current.answers).toBe(true);
    await pass(60_000);
    expect(health.current.answers).toBe(true);
    expect(looks.filter(({ changed }) => changed)).toHaveLength(3);
    expect(asked.map(({ at }) => at)).toEqual([0, 10_000, 14_000, 29_000, 44_000, 59_000, 74_000]);
    await end();
  });

  test('is waited for ten seconds, not longer', async () => {
    const { provider, health, looks, pass, end } = await slowly();
    provider.way = 'silent';
    await pass(11_000);
    expect(health.current).toMatchObject({ answers: false, problem: 'no answer within 10 s' });
    expect(looks.at(-1)).toEqual({ changed: false, outageMs: 0 });
    await end();
  });

  test('is missed as soon as any other once it has been silent', async () => {
    const { provider, health, looks, pass, end } = await slowly();
    provider.way = 'silent';
    await pass(30_000);
    provider.way = 'answers';
    await pass(4_000);
    expect(health.current.answers).toBe(true);
    expect(looks.filter(({ changed }) => changed)).toHaveLength(3);
    await end();
  });

  test('is not waited for so long any more once it is quick again', async () => {
    const { provider, health, pass, end } = await slowly();
    provider.way = 'answers';
    await pass(1_000);
    expect(health.current.answers).toBe(true);
    provider.way = 'silent';
    await pass(13_000);
    expect(health.current).toMatchObject({ answers: false, problem: 'no answer within 3 s' });
    await end();
  });
});

test('again() looks at once, at the version too, and the ten seconds begin again', async () => {
  const { health, asked, pass, end } = play();
  await pass(4_000);
  health.again();
  await pass(10_000);
  expect(asked).toEqual([
    { path: '/version', at: 0 },
    { path: '/version', at: 4_000 },
    { path: '/livez', at: 14_000 },
  ]);
  await end();
});

test('while a waiter needs the next answer, it is polled each second although it answers', async () => {
  const { state, asked, pass, end } = play();
  state.awaited = true;
  await pass(3_000);
  state.awaited = false;
  await pass(12_000);
  expect(asked.map(({ at }) => at)).toEqual([0, 1_000, 2_000, 3_000, 4_000, 14_000]);
  await end();
});

test('a poll that was aborted by the end is not reported', async () => {
  const { provider, asked, looks, clock, pass, end } = play();
  await pass(0);
  provider.way = 'silent';
  await pass(10_000);
  await end();
  expect(asked).toHaveLength(2);
  expect(looks).toHaveLength(1);
  expect(clock.sleeping).toBe(0);
});
