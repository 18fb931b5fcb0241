import { expect, test } from 'vitest';
import { eventually } from '#test/harness/eventually.ts';
import type { FollowEars } from './commands.ts';
import { listen } from './ears.ts';

function start() {
  let time = 10_000;
  const started: FollowEars[] = [];
  let stops = 0;
  const ears = listen({
    commands: {
      follow: (_program, _args, each) => {
        started.push(each);
        return {
          stop: () => {
            stops += 1;
          },
        };
      },
    },
    now: () => time,
    name: 'ip',
    args: ['monitor'],
    isOurs: (line) => line.includes('liqo-'),
  });
  return {
    ears,
    started,
    stops: () => stops,
    pass: (ms: number): number => {
      time += ms;
      return time;
    },
  };
}

test('nothing is taken for unchanged that was looked at before somebody surely listened', () => {
  const { ears, pass } = start();
  const early = pass(500);
  const late = pass(1_000);
  pass(10_000);
  expect(ears.mayHaveChanged(early)).toBe(true);
  expect(ears.mayHaveChanged(late)).toBe(false);
});

test('a change counts for whoever looked before it was told, and only if it is ours', () => {
  const { ears, started, pass } = start();
  const looked = pass(5_000);
  pass(100);
  started[0]?.line('5: eth0: <UP>');
  expect(ears.mayHaveChanged(looked)).toBe(false);
  started[0]?.line('Deleted 7: liqo-overlay: <UP>');
  expect(ears.mayHaveChanged(looked)).toBe(true);
  expect(ears.mayHaveChanged(pass(100))).toBe(false);
});

test('who complains may have missed something', () => {
  const { ears, started, pass } = start();
  const looked = pass(5_000);
  pass(100);
  started[0]?.complaint();
  expect(ears.mayHaveChanged(looked)).toBe(true);
});

test('who has ended hears nothing, and is started again', async () => {
  const { ears, started, stops, pass } = start();
  const looked = pass(120_000);
  expect(ears.mayHaveChanged(looked)).toBe(false);
  started[0]?.ended();
  expect(ears.mayHaveChanged(looked)).toBe(true);
  expect(ears.mayHaveChanged(pass(60_000))).toBe(true);
  await eventually('it runs again', () => started.length === 2, { withinMs: 10_000 });
  expect(ears.mayHaveChanged(looked)).toBe(true);
  expect(ears.mayHaveChanged(pass(2_000))).toBe(false);
  ears.stop();
  expect(stops()).toBe(1);
});
