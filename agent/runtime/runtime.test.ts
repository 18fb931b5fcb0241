import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { AppError } from '#shared/errors/app-error.ts';
import { createIds } from './ids.ts';
import { createLog } from './log.ts';
import { createPlainLog } from './plain-log.ts';

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

  test('of the controllers and of the node process holds no credential at any depth, nor in bound fields', () => {
    const { lines, log } = capture();
    const plain = createPlainLog('debug', {}, (line) => void lines.push(line));
    const error = new Error('outer', { cause: Object.assign(new Error('inner'), { detail: { token: 's3cret' } }) });
    for (const each of [log, plain]) {
      each.with({ kubeconfig: 's3cret' }).info('joined', { a: [{ b: { c: new Map([['nonce', 's3cret']]) } }] });
      each.error('failed', error);
    }
    expect(lines).toHaveLength(4);
    expect(lines.join('')).not.toContain('s3cret');
    expect(lines.filter((line) => line.includes('"inner"'))).toHaveLength(2);
  });
});
