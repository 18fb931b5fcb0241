import { expect, test } from 'vitest';
import { eventually } from '#test/harness/eventually.ts';
import type { FollowEars } from './commands.ts';
import { listen } from './netlink-monitor.ts';

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

test('a read from before the monitor is known to run is never taken for unchanged', () => {
  const { ears, pass } = start();
  const early = pass(500);
  const late = pass(1_000);
  pass(10_000);
  expect(ears.since(early)).toBe('unknown');
  expect(ears.since(late)).toBe('quiet');
});

test('a change invalidates reads from before its report, and only if it concerns us', () => {
  const { ears, started, pass } = start();
  const looked = pass(5_000);
  pass(100);
  started[0]?.line('5: eth0: <UP>');
  expect(ears.since(looked)).toBe('quiet');
  started[0]?.line('Deleted 7: liqo-overlay: <UP>');
  expect(ears.since(looked)).toBe('changed');
  expect(ears.since(pass(100))).toBe('quiet');
});

test('a monitor that prints an error may have missed a change', () => {
  const { ears, started, pass } = start();
  const looked = pass(5_000);
  pass(100);
  started[0]?.complaint();
  expect(ears.since(looked)).toBe('changed');
});

test('a monitor that has ended reports nothing, and is started again', async () => {
  const { ears, started, stops, pass } = start();
  const looked = pass(120_000);
  expect(ears.since(looked)).toBe('quiet');
  started[0]?.ended();
  expect(ears.since(looked)).toBe('unknown');
  expect(ears.since(pass(60_000))).toBe('unknown');
  await eventually('it runs again', () => started.length === 2);
  expect(ears.since(looked)).toBe('unknown');
  expect(ears.since(pass(2_000))).toBe('quiet');
  ears.stop();
  expect(stops()).toBe(1);
});
