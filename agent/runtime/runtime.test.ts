import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { AppError } from '#shared/errors/app-error.ts';
import { systemClock } from './clock.ts';
import { createIds } from './ids.ts';
import { createLog } from './log.ts';

describe('an identifier', () => {
  test('has its prefix and 26 characters, and sorts by creation, also when the clock jumps', () => {
    fc.assert(
      fc.property(fc.array(fc.integer({ min: 0, max: 2 ** 43 }), { minLength: 2, maxLength: 50 }), (times) => {
        let next = 0;
        const ids = createIds(() => times[next++] ?? 0);
        const made = times.map(() => ids.next('prg'));
        expect(made.every((id) => /^prg_[0-9a-hjkmnp-tv-z]{26}$/.test(id))).toBe(true);
        expect([...made].sort()).toEqual(made);
        expect(new Set(made).size).toBe(made.length);
      }),
    );
  });

  test('starts with the time it was made at', () => {
    const [early, late] = [1_000, 2_000].map((time) => createIds(() => time).next('x'));
    expect((early ?? '') < (late ?? '')).toBe(true);
  });
});

describe('the real clock', () => {
  test('wakes a sleeper with the reason of its signal', async () => {
    const stop = new AbortController();
    const asleep = systemClock.sleep(60_000, stop.signal);
    stop.abort(new Error('enough'));
    await expect(asleep).rejects.toThrow('enough');
    await expect(systemClock.sleep(1, stop.signal)).rejects.toThrow('enough');
  });

  test('does not end a sleep of months at once', async () => {
    const stop = new AbortController();
    const first = await Promise.race([
      systemClock.sleep(2 ** 33, stop.signal).catch(() => 'aborted'),
      systemClock.sleep(5).then(() => 'short'),
    ]);
    stop.abort();
    expect(first).toBe('short');
  });

  test('calls back after its time, not at once after months, and not when it was told to let be', async () => {
    const called: string[] = [];
    const undo = ['now', 'months', 'undone'].map((what) =>
      systemClock.after?.(what === 'months' ? 2 ** 33 : 5, () => called.push(what)),
    );
    undo[2]?.();
    await systemClock.sleep(30);
    undo[1]?.();
    expect(called).toEqual(['now']);
  });
});

describe('the log', () => {
  const capture = () => {
    const lines: string[] = [];
    return { lines, log: createLog({ level: 'debug', destination: { write: (line) => void lines.push(line) } }) };
  };

  test('writes one JSON line with all fields and the whole error', () => {
    const { lines, log } = capture();
    const cause = new Error('ECONNREFUSED');
    const error = new AppError('kube_unreachable', 'not reachable', { detail: { server: 'https://x' }, cause });
    log.with({ cluster: 'rome' }).error('sync failed', error, { key: 'a/b' });
    expect(JSON.parse(lines[0] ?? '')).toMatchObject({
      level: 'error',
      msg: 'sync failed',
      cluster: 'rome',
      key: 'a/b',
      error: { code: 'kube_unreachable', detail: { server: 'https://x' }, cause: { message: 'ECONNREFUSED' } },
    });
  });

  test('masks what is named like a credential, at the top and one and two levels down', () => {
    const { lines, log } = capture();
    log.info('enrolled', { token: 's3cret', user: { password: 's3cret', deep: { kubeconfig: 's3cret' } } });
    expect(lines[0]).not.toContain('s3cret');
  });
});
