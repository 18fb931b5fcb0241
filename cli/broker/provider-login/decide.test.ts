import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { decide, type TokenAnswer } from './decide.ts';

const error = (name: string, description?: string): TokenAnswer => ({
  kind: 'error',
  error: name,
  ...(description !== undefined && { description }),
});

describe('while the device flow waits for consent', () => {
  test.each<[string, TokenAnswer, unknown, pauseMs?: number]>([
    ['it asks again after the same pause', error('authorization_pending'), { do: 'ask again', afterMs: 5_000 }],
    ['it asks five seconds slower when told so', error('slow_down'), { do: 'ask again', afterMs: 10_000 }],
    ['it doubles the pause without an answer', { kind: 'silence', why: 'x' }, { do: 'ask again', afterMs: 10_000 }],
    ['it asks at least once a minute', { kind: 'silence', why: 'x' }, { do: 'ask again', afterMs: 60_000 }, 40_000],
    ['it takes the tokens', { kind: 'tokens', tokens: { idToken: 't' } }, { do: 'take', tokens: { idToken: 't' } }],
    ['it ends when denied', error('access_denied', 'no'), { do: 'give up', because: 'denied', message: 'no' }],
    [
      'it ends when the code expired',
      error('expired_token'),
      { do: 'give up', because: 'expired', message: 'expired_token' },
    ],
    [
      'it ends at any other error',
      error('invalid_client'),
      { do: 'give up', because: 'refused', message: 'invalid_client' },
    ],
  ])('%s', (_title, answer, next, pauseMs = 5_000) => {
    expect(decide(answer, pauseMs)).toEqual(next);
  });

  test('it never asks faster than before, for every order of answers', () => {
    const answers = fc.array(
      fc.constantFrom<TokenAnswer>(error('authorization_pending'), error('slow_down'), { kind: 'silence', why: '' }),
      { maxLength: 20 },
    );
    fc.assert(
      fc.property(answers, fc.integer({ min: 1, max: 60_000 }), (all, first) => {
        let pause = first;
        for (const answer of all) {
          const next = decide(answer, pause);
          expect(next).toMatchObject({ do: 'ask again' });
          if (next.do !== 'ask again') continue;
          expect(next.afterMs).toBeGreaterThanOrEqual(pause);
          pause = next.afterMs;
        }
      }),
    );
  });
});
