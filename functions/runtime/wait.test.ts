import { describe, expect, test } from 'vitest';
import { ManualClock } from '#shared/ports/clock.ts';
import { Wait, type Waiting, waitUntil } from './wait.ts';

const never = new AbortController().signal;

/** A store in which `state` changes on request of the test. */
function clusters() {
  const clock = new ManualClock();
  const waiters = new Set<(heard: boolean) => void>();
  let ended = 0;
  let state = 0;
  let looks = 0;
  return {
    clock,
    looks: () => looks,
    ended: () => ended,
    change() {
      state += 1;
      for (const wake of waiters) wake(true);
      waiters.clear();
    },
    wait: (
      done: (value: number) => boolean,
      seconds: number | undefined,
      { longestWaitSeconds, ...instead }: Partial<Waiting<number>> = {},
    ) =>
      waitUntil({
        look: async () => {
          looks += 1;
          return state;
        },
        done,
        seconds,
        longestWaitSeconds,
        tenant: 't',
        names: ['state'],
        clock,
        signal: never,
        listen: () => ({
          changed: (ms, signal) =>
            Promise.race([
              new Promise<boolean>((resolve) => waiters.add(resolve)),
              clock.sleep(ms, signal).then(() => false),
            ]),
          end: () => {
            ended += 1;
          },
        }),
        ...instead,
      }),
  };
}
const turn = () => new Promise((resolve) => setImmediate(resolve));

describe('a long poll', () => {
  test('answers at once when it need not wait', async () => {
    expect(await clusters().wait((value) => value === 0, 25)).toBe(0);
  });

  test('answers the state as it is when the request does not ask it to wait', async () => {
    expect(await clusters().wait(() => false, undefined)).toBe(0);
  });

  test('answers as soon as the condition holds', async () => {
    const it = clusters();
    const answer = it.wait((value) => value === 2, 25);
    await turn();
    it.change();
    await turn();
    it.change();
    expect(await answer).toBe(2);
    expect(it.ended()).toBe(1);
  });

  test('answers the state as it is where it may not listen', async () => {
    const refused = (): never => {
      throw new Error('too many');
    };
    expect(await clusters().wait(() => false, 25, { listen: refused })).toBe(0);
  });

  test('listens no longer when a look fails', async () => {
    const it = clusters();
    await expect(it.wait(() => false, 25, { look: () => Promise.reject(new Error('gone')) })).rejects.toThrow('gone');
    expect(it.ended()).toBe(1);
  });

  test('looks again by itself every five seconds, in case the hint got lost, and not sooner', async () => {
    const it = clusters();
    const answer = it.wait(() => false, 12);
    await turn();
    expect(it.looks()).toBe(1);
    for (let second = 1; second <= 12; second++) {
      it.clock.advance(1_000);
      await turn();
      expect(it.looks()).toBe(1 + Math.floor(second / 5));
    }
    expect(await answer).toBe(0);
  });

  test('answers with what is when the time is up', async () => {
    const it = clusters();
    const answer = it.wait(() => false, 2);
    for (let i = 0; i < 4; i++) {
      await turn();
      it.clock.advance(1_000);
    }
    expect(await answer).toBe(0);
  });

  test('ends sooner where the broker waits less than was asked for', async () => {
    const it = clusters();
    const answer = it.wait(() => false, 25, { longestWaitSeconds: 1 });
    await turn();
    it.clock.advance(1_000);
    expect(await answer).toBe(0);
  });

  test.each(['26', '-1', 'x'])('of %s seconds is refused', (text) => {
    expect(Wait.safeParse(text).success).toBe(false);
  });
});
