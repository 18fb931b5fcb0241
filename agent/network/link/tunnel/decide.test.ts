import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { type DialState, type DialStep, dialStep, dialTiming, type LinkEvidence, startDial } from './decide.ts';

const a = '198.18.0.1:51840';
const b = '198.18.0.2:51840';
const up = (since: number, more: Partial<DialState> = {}): DialState => ({
  phase: 'up',
  since,
  endpoint: a,
  attempts: 0,
  tried: [],
  answersPings: true,
  unproven: 0,
  source: 'own',
  sourceSince: since,
  ...more,
});

describe('a link that starts', () => {
  test('dials the first candidate at once', () => {
    expect(startDial({ now: 5, candidates: [a, b] }).dial).toBe(a);
  });

  test('dials first where the former active replica heard the peer', () => {
    expect(startDial({ now: 5, candidates: [a, b], learned: b }).dial).toBe(b);
  });

  test('leaves a session alone that was there before this process', () => {
    const step = startDial({ now: 100_000, candidates: [a], learned: b, handshakeAt: 40_000 });
    expect(step.dial).toBeUndefined();
    expect(step.state).toMatchObject({ phase: 'up', endpoint: b });
  });

  test('replaces a session that is too old to be alive', () => {
    expect(startDial({ now: 300_000, candidates: [a], learned: b, handshakeAt: 40_000 }).dial).toBe(b);
  });

  test('without any candidate waits for the peer, and dials as soon as one is known', () => {
    const waiting = startDial({ now: 0, candidates: [] });
    expect(waiting.dial).toBeUndefined();
    expect(dialStep(waiting.state, { now: 10, candidates: [a] }).dial).toBe(a);
  });
});

describe('a link that dials', () => {
  test('goes through all candidates in turn, quickly at first, and begins again with more patience', () => {
    const dialled: [number, string | undefined][] = [];
    let step: DialStep = startDial({ now: 0, candidates: [a, b] });
    dialled.push([0, step.dial]);
    for (let turn = 0; turn < 9; turn++) {
      const now = step.lookAt;
      step = dialStep(step.state, { now, candidates: [a, b] });
      dialled.push([now, step.dial]);
    }
    expect(dialled).toEqual([
      [0, a],
      [500, b],
      [1000, a],
      [1500, b],
      [2000, a],
      [2500, b],
      [3000, a],
      [3750, b],
      [4500, a],
      [5625, b],
    ]);
  });

  test.each([
    { evidence: 'a pong', seen: { pongAt: 700 }, phase: 'up' },
    { evidence: 'a handshake alone', seen: { handshakeAt: 700 }, phase: 'dialling' },
    { evidence: 'bytes without a session', seen: { receivedAt: 700 }, phase: 'dialling' },
    { evidence: 'a pong from before the attempt', seen: { pongAt: 400 }, phase: 'dialling' },
  ] as const)('after $evidence is $phase', ({ seen, phase }) => {
    const { state } = startDial({ now: 500, candidates: [a, b] });
    expect(dialStep(state, { now: 800, candidates: [a, b], ...seen }).state.phase).toBe(phase);
  });
});

describe('a link whose peer is heard', () => {
  const dialling = (more: Partial<DialState> = {}): DialState => {
    const { answersPings: _, ...rest } = up(0);
    return { ...rest, phase: 'dialling', attempts: 1, tried: [a], ...more };
  };
  const stepsOf = (state: DialState, seen: Omit<LinkEvidence, 'now'>) =>
    [499, 500, 999, 1_000, 1_749, 2_000].map((now) => dialStep(state, { now, ...seen }).dial);
  const never = undefined;

  test.each([
    { what: 'nothing', seen: {}, dials: [never, b, b, b, b, b] },
    { what: 'bytes of a handshake', seen: { receivedAt: 250 }, dials: [never, never, never, b, b, b] },
    { what: 'a handshake', seen: { handshakeAt: 250 }, dials: [never, never, never, b, b, b] },
    {
      what: 'bytes, at the side that gives way',
      seen: { receivedAt: 1, isDialled: true },
      dials: Array(5).fill(never).concat(b),
    },
    { what: 'bytes over and over', seen: { receivedAt: 1_999 }, dials: [never, never, never, never, never, b] },
  ])('by $what waits for a session before it tries the next candidate', ({ seen, dials }) => {
    expect(stepsOf(dialling(), { candidates: [a, b], ...seen })).toEqual(dials);
  });

  test('answers first where the peer sends from', () => {
    const learned = '198.18.9.9:1024';
    const seen = { candidates: [a, b], learned, receivedAt: 250 };
    expect(dialStep(dialling(), { ...seen, now: 1_250 }).dial).toBe(learned);
    const after = dialling({ endpoint: learned, tried: [a, learned] });
    expect(dialStep(after, { ...seen, now: 1_250 }).dial).toBe(b);
  });

  test('takes a handshake for no proof when the peer answers pings, and shakes hands again within a second', () => {
    const seen = { candidates: [a, b], learned: a, pongAt: -5_000, handshakeAt: 20 };
    const step = dialStep(dialling({ answersPings: true, unproven: 1 }), { ...seen, now: 900 });
    expect(step).toMatchObject({ dial: a, state: { phase: 'dialling', unproven: 2 } });
    const many = dialStep(dialling({ answersPings: true, unproven: 9 }), { ...seen, now: 900 });
    expect(many).toMatchObject({ state: { phase: 'dialling', unproven: 10 } });
  });

  test('takes the third handshake without any pong for a peer that answers no pings', () => {
    const seen = { candidates: [a, b], learned: a, handshakeAt: 20, now: 900 };
    expect(dialStep(dialling({ unproven: 1 }), seen).state.phase).toBe('dialling');
    expect(dialStep(dialling({ unproven: 2 }), seen).state).toMatchObject({ phase: 'up', answersPings: false });
    // Once known, the next handshake is enough.
    expect(dialStep(dialling({ answersPings: false }), { ...seen, now: 100 }).state.phase).toBe('up');
  });
});

describe('a link that no peer answers on', () => {
  /** All attempts of the first minutes: when, where to, and from which port. */
  function attempts(candidates: readonly string[], untilMs: number, portMs?: number) {
    const seen = { candidates, ...(portMs === undefined ? {} : { portMs }) };
    let step = startDial({ now: 0, ...seen });
    const all = [{ at: 0, to: step.dial, from: step.from, source: step.state.source }];
    while (step.lookAt < untilMs) {
      const now = step.lookAt;
      step = dialStep(step.state, { now, ...seen });
      if (step.dial !== undefined) all.push({ at: now, to: step.dial, from: step.from, source: step.state.source });
    }
    return all;
  }
  const moves = (all: ReturnType<typeof attempts>) => all.flatMap(({ at, from }) => (from ? [{ at, from }] : []));

  test('changes its port after 15 s or one round more, and back again, for as long as it takes', () => {
    const all = moves(attempts([a, b], 100_000, 15_000));
    expect(all.map(({ from }) => from)).toEqual(['another', 'own', 'another', 'own', 'another'].slice(0, all.length));
    expect(all.length).toBeGreaterThanOrEqual(4);
    const times = [0, ...all.map(({ at }) => at)];
    for (const [index, at] of times.slice(1).entries()) {
      expect(at - times[index]!).toBeGreaterThanOrEqual(15_000);
      expect(at - times[index]!).toBeLessThanOrEqual(15_000 + 2 * dialTiming.longestAttemptMs);
    }
  });

  test('dials every candidate from each port, however many there are', () => {
    const many = Array.from({ length: 8 }, (_, i) => `198.18.1.${i}:51840`);
    const all = attempts(many, 200_000, 15_000);
    const firstMove = all.findIndex(({ from }) => from !== undefined);
    const secondMove = all.findIndex(({ from }, index) => from !== undefined && index > firstMove);
    for (const stay of [all.slice(0, firstMove), all.slice(firstMove, secondMove)])
      expect(new Set(stay.map(({ to }) => to))).toEqual(new Set(many));
  });

  test('keeps its port when the peer dials it', () => {
    expect(moves(attempts([a, b], 100_000))).toEqual([]);
  });

  test('that is answered at last stays where it was answered, and begins there when it is silent again', () => {
    const elsewhere = up(50_000, { source: 'another', sourceSince: 20_000 });
    const silent = dialStep(elsewhere, { now: 90_000, pongAt: 80_000, candidates: [a], portMs: 15_000 });
    expect(silent).toMatchObject({ dial: a, state: { source: 'another', sourceSince: 90_000 } });
    expect(silent.from).toBeUndefined();
  });
});

describe('a link that is up', () => {
  test('is dialled again after 1.5 s of silence, first where the peer was last', () => {
    const seen = { pongAt: 10_000, candidates: [a, b], learned: b };
    expect(dialStep(up(0), { ...seen, now: 11_499 }).dial).toBeUndefined();
    expect(dialStep(up(0), { ...seen, now: 11_500 }).dial).toBe(b);
  });

  test('has its round trips added to the patience', () => {
    const seen = { pongAt: 10_000, candidates: [a], smoothRttMs: 600 };
    expect(dialStep(up(0), { ...seen, now: 12_699 }).dial).toBeUndefined();
    expect(dialStep(up(0), { ...seen, now: 12_700 }).dial).toBe(a);
  });

  test('is left alone for a while in which bytes arrive, although pings are lost', () => {
    expect(dialStep(up(0), { now: 9_000, pongAt: 5_000, receivedAt: 8_900, candidates: [a] }).dial).toBeUndefined();
    expect(dialStep(up(0), { now: 12_000, pongAt: 5_000, receivedAt: 11_900, candidates: [a] }).dial).toBe(a);
  });

  test('of a peer that answers no pings is left alone as long as a session can live', () => {
    const mute = up(0, { answersPings: false });
    expect(dialStep(mute, { now: 179_000, candidates: [a] }).dial).toBeUndefined();
    expect(dialStep(mute, { now: 180_000, candidates: [a] }).dial).toBe(a);
  });

  test('follows a peer that roams', () => {
    expect(dialStep(up(0), { now: 100, pongAt: 90, candidates: [a], learned: b }).state.endpoint).toBe(b);
  });
});

describe('in any history', () => {
  /** The world: the peer is reachable at some endpoints during some seconds; handshakes and pongs follow from that. */
  const history = fc.record({
    candidates: fc.uniqueArray(fc.constantFrom('c0', 'c1', 'c2', 'c3'), { minLength: 1, maxLength: 4 }),
    seconds: fc.array(fc.constantFrom(undefined, 'c0', 'c1', 'c2', 'c3'), { minLength: 1, maxLength: 60 }),
    rtt: fc.integer({ min: 1, max: 900 }),
  });

  test('a reachable candidate is found within one round, and a live link is never torn down', () => {
    fc.assert(
      fc.property(history, ({ candidates, seconds, rtt }) => {
        let now = 1_000;
        let step = startDial({ now, candidates });
        let dialledAt = now;
        let pongAt: number | undefined;
        let smoothRttMs: number | undefined;
        let steadySince = now;
        const world = [...seconds, ...Array<string>(40).fill(candidates[0]!)];
        for (const [index, reachable] of world.entries()) {
          if (reachable !== world[index - 1]) steadySince = now;
          for (let tick = 0; tick < 4; tick++) {
            now += 250;
            const works = step.state.endpoint === reachable && now - dialledAt > 2 * rtt;
            if (works && now - steadySince > 2 * rtt) {
              pongAt = now;
              smoothRttMs = rtt;
            }
            const seen: LinkEvidence = {
              now,
              candidates,
              ...(pongAt === undefined ? {} : { pongAt }),
              ...(smoothRttMs === undefined ? {} : { smoothRttMs }),
            };
            const before = step.state;
            step = dialStep(before, seen);
            if (step.dial !== undefined) {
              dialledAt = now;
              expect(candidates).toContain(step.dial);
              expect(pongAt === undefined || now - pongAt >= dialTiming.silenceMs).toBe(true);
            }
            expect(step.lookAt - now).toBeLessThanOrEqual(dialTiming.sessionMs);
          }
        }
        expect(step.state.phase).toBe('up');
        expect(step.state.endpoint).toBe(candidates[0]);
      }),
    );
  });
});
