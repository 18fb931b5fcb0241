import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { capturedIo } from '#cli/captured-io.ts';
import { AppError } from '#shared/errors/app-error.ts';
import { codes, type ErrorCode } from '#shared/errors/codes.ts';
import { age, elapsed, parseDuration } from './duration.ts';
import { explain } from './failure.ts';
import { createProgress, during, lineMs } from './progress.ts';
import { memoryText } from './quantity-text.ts';
import { paintFor } from './style.ts';
import { table } from './table.ts';

describe('times', () => {
  test.each([
    { ms: 0, text: '0.0s' },
    { ms: 3_249, text: '3.2s' },
    { ms: 65_000, text: '1m05s' },
    { ms: 7_380_000, text: '2h03m' },
    { ms: 446_400_000, text: '5d4h' },
  ])('$ms ms have elapsed as $text', ({ ms, text }) => {
    expect(elapsed(ms)).toBe(text);
  });

  test.each([
    { seconds: 8, text: '8s' },
    { seconds: 300, text: '5m' },
    { seconds: 10_800, text: '3h' },
    { seconds: 259_200, text: '3d' },
  ])('an age of $seconds s is $text', ({ seconds, text }) => {
    expect(age(0, seconds * 1_000)).toBe(text);
  });

  test.each([
    { text: '90s', ms: 90_000 },
    { text: '1.5m', ms: 90_000 },
    { text: '2h', ms: 7_200_000 },
    { text: '250ms', ms: 250 },
    { text: '5', ms: undefined },
    { text: 'soon', ms: undefined },
  ])('the duration $text is $ms ms', ({ text, ms }) => {
    expect(parseDuration(text)).toBe(ms);
  });
});

describe('memory', () => {
  test.each([
    { quantity: '24581692Ki', text: '23.4Gi' },
    { quantity: '4Gi', text: '4Gi' },
    { quantity: '1e3', text: '1000' },
    { quantity: '1536Mi', text: '1.5Gi' },
    { quantity: 'odd', text: 'odd' },
    { quantity: undefined, text: '-' },
  ])('of $quantity is $text', ({ quantity, text }) => {
    expect(memoryText(quantity)).toBe(text);
  });
});

describe('a table', () => {
  const columns = [
    { head: 'name', cell: (row: { name: string; n: string }) => row.name },
    { head: 'n', cell: (row: { name: string; n: string }) => row.n },
    { head: 'end', cell: () => 'x' },
  ];

  test('has columns as wide as their widest cell and a dash for nothing', () => {
    expect(
      table(
        [
          { name: 'a long name', n: '' },
          { name: 'b', n: '10' },
        ],
        columns,
      ),
    ).toBe('NAME          N    END\na long name   -    x\nb             10   x\n');
  });

  test('puts every cell of a column at the same place, for all contents', () => {
    const word = fc
      .string({ minLength: 1, maxLength: 12 })
      .filter((text) => !text.includes('x') && !text.includes('\n'));
    fc.assert(
      fc.property(fc.array(fc.record({ name: word, n: word }), { minLength: 1 }), (rows) => {
        const lines = table(rows, columns).trimEnd().split('\n').slice(1);
        expect(new Set(lines.map((line) => line.lastIndexOf('x'))).size).toBe(1);
      }),
    );
  });
});

describe('colour', () => {
  test.each([
    { tty: true, env: {}, coloured: true },
    { tty: false, env: {}, coloured: false },
    { tty: true, env: { NO_COLOR: '1' }, coloured: false },
    { tty: true, env: { TERM: 'dumb' }, coloured: false },
  ])('is $coloured with tty $tty and $env', ({ tty, env, coloured }) => {
    const { stdout } = capturedIo({ tty });
    expect(paintFor(stdout, env)('good', 'yes') !== 'yes').toBe(coloured);
  });
});

describe('progress', () => {
  test('is plain lines off a terminal: the latest news every few seconds, and each once', async () => {
    let now = 0;
    let wake: (() => void) | undefined;
    const sleep = () => new Promise<void>((resolve) => (wake = resolve));
    const io = capturedIo({ clock: { now: () => now, sleep } });
    await during(createProgress(io), 'waiting', async (step) => {
      for (const [at, news] of [
        [0, 'a'],
        [100, 'b'],
        [200, 'b'],
        [2_900, 'c'],
      ] as const) {
        now = at;
        step.update(news);
      }
      now = lineMs;
      wake?.();
      await Promise.resolve();
      await Promise.resolve();
      now = 2 * lineMs;
      step.update('d');
      step.update('e');
    });
    const lines = io.err.replaceAll(/\[ *[\d.]+s\] /g, '').split('\n');
    expect(lines).toEqual(['waiting', 'waiting: c', 'waiting: d', 'ok waiting: e', '']);
    expect(io.out).toBe('');
  });

  test('rewrites one line on a terminal', async () => {
    const io = capturedIo({ tty: true, env: { NO_COLOR: '1' } });
    await during(createProgress(io), 'waiting', async (step) => step.update('news'));
    expect(io.err.split('\n')).toHaveLength(2);
    expect(io.err.split('\r\u001b[2K').at(-1)).toMatch(/^\[ *\d\.\ds\] ✓ waiting: news\n$/);
  });

  test('says which step failed', async () => {
    const io = capturedIo({});
    const failing = during(createProgress(io), 'waiting', () => Promise.reject(new Error('no')));
    await expect(failing).rejects.toThrow('no');
    expect(io.err).toContain('failed waiting');
  });
});

describe('an error', () => {
  test.each(Object.keys(codes) as ErrorCode[])('%s says what to do and has its exit code', (code) => {
    const { exit, text } = explain(new AppError(code, 'it went wrong'));
    expect(exit).toBe(codes[code].exit);
    expect(text).toBe(`error: it went wrong (${code})\nto do: ${codes[code].remedy}\n`);
  });

  test('with a remedy of its own says that one, and the request id', () => {
    const detail = { remedy: 'turn it on', requestId: 'req_1', errors: [{ field: 'cpu', message: 'too much' }] };
    expect(explain(new AppError('invalid_input', 'no', { detail })).text).toBe(
      'error: no (invalid_input)\n  cpu: too much\nto do: turn it on\nrequest: req_1\n',
    );
  });

  test('of an unknown type is a defect', () => {
    expect(explain(new TypeError('oops'))).toMatchObject({ exit: 1, text: expect.stringContaining('error: oops') });
  });
});
