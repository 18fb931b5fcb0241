import { describe, expect, test } from 'vitest';
import { type BuildPart, expectedOn, timeText, watchBuild } from './build-progress.ts';

const part: BuildPart = { what: 'kubebox (Kubernetes and etcd)', place: { number: 1, of: 5 }, expectedSeconds: 360 };

function clusters(isTTY: boolean) {
  let [now, next] = [0, 0];
  let each: (() => void) | undefined;
  let period = 0;
  const lines: string[] = [];
  let drawn = '';
  return {
    lines,
    drawn: () => drawn,
    ticking: () => each !== undefined,
    pass(ms: number) {
      for (const end = now + ms; next <= end && each; next += period) {
        now = next;
        each();
      }
    },
    ports: {
      log: (line: string) => void lines.push(line),
      screen: { isTTY, columns: 200, write: (text: string) => (drawn += text) },
      now: () => now,
      every: (ms: number, tick: () => void) => {
        [each, period, next] = [tick, ms, now + ms];
        return () => {
          each = undefined;
        };
      },
      cores: 2,
    },
  };
}

describe('a long build', () => {
  test('says every 30 s which part of how many it is, since when, and how long it takes', async () => {
    const { ports, lines, pass, ticking } = clusters(false);
    await watchBuild(part, ports, async (compiled) => {
      pass(30_000);
      compiled(812);
      pass(45_000);
    });
    const title = 'part 1 of 5: building kubebox (Kubernetes and etcd)';
    expect(lines).toEqual([
      `${title}, about 6 min`,
      `${title}: 30 s of about 6 min, 0 packages compiled`,
      `${title}: 1 min of about 6 min, 812 packages compiled`,
      `${title}: done in 1 min`,
    ]);
    expect(ticking()).toBe(false);
  });

  test('is one changing line on a terminal, and one line when it is done', async () => {
    const { ports, lines, drawn, pass } = clusters(true);
    await watchBuild(part, ports, async () => pass(3_000));
    expect(drawn()).not.toContain('\n');
    expect(drawn().split('\r\x1b[2K').filter(Boolean)).toHaveLength(4);
    expect(drawn().endsWith('\r\x1b[2K')).toBe(true);
    expect(lines).toEqual(['part 1 of 5: building kubebox (Kubernetes and etcd): done in 3 s']);
  });

  test('that fails says so and stops', async () => {
    const { ports, lines, ticking } = clusters(false);
    await expect(watchBuild(part, ports, () => Promise.reject(new Error('no')))).rejects.toThrow('no');
    expect(lines.at(-1)).toContain('failed after 0 s');
    expect(ticking()).toBe(false);
  });
});

test.each([
  { cores: 2, seconds: 360, expected: 360 },
  { cores: 8, seconds: 360, expected: 90 },
  { cores: 1, seconds: 60, expected: 120 },
  { cores: 64, seconds: 8, expected: 5 },
])('$seconds s on two cores are about $expected s on $cores', ({ cores, seconds, expected }) => {
  expect(expectedOn(cores, seconds)).toBe(expected);
});

test.each([
  { seconds: 0.4, text: '0 s' },
  { seconds: 59.6, text: '1 min' },
  { seconds: 150, text: '2 min 30 s' },
])('$seconds s are $text', ({ seconds, text }) => {
  expect(timeText(seconds)).toBe(text);
});
