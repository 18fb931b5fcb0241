import { expect, test } from 'vitest';
import { eventually } from '#test/harness/eventually.ts';
import type { FollowHandlers } from './commands.ts';
import { startNetlinkMonitor } from './netlink-monitor.ts';

function start() {
  let time = 10_000;
  const started: FollowHandlers[] = [];
  let stops = 0;
  const monitor = startNetlinkMonitor({
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
    monitor,
    started,
    stops: () => stops,
    pass: (ms: number): number => {
      time += ms;
      return time;
    },
  };
}

test('a read from before the monitor is known to run is never taken for unchanged', () => {
  const { monitor, pass } = start();
  const early = pass(500);
  const late = pass(1_000);
  pass(10_000);
  expect(monitor.since(early)).toBe('unknown');
  expect(monitor.since(late)).toBe('quiet');
});

test('a change invalidates reads from before its report, and only if it concerns us', () => {
  const { monitor, started, pass } = start();
  const looked = pass(5_000);
  pass(100);
  started[0]?.line('5: eth0: <UP>');
  expect(monitor.since(looked)).toBe('quiet');
  started[0]?.line('Deleted 7: liqo-overlay: <UP>');
  expect(monitor.since(looked)).toBe('changed');
  expect(monitor.since(pass(100))).toBe('quiet');
});

test('a monitor that prints an error may have missed a change', () => {
  const { monitor, started, pass } = start();
  const looked = pass(5_000);
  pass(100);
  started[0]?.complaint();
  expect(monitor.since(looked)).toBe('changed');
});

test('a monitor that has ended reports nothing, and is started again', async () => {
  const { monitor, started, stops, pass } = start();
  const looked = pass(120_000);
  expect(monitor.since(looked)).toBe('quiet');
  started[0]?.ended();
  expect(monitor.since(looked)).toBe('unknown');
  expect(monitor.since(pass(60_000))).toBe('unknown');
  await eventually('it runs again', () => started.length === 2);
  expect(monitor.since(looked)).toBe('unknown');
  expect(monitor.since(pass(2_000))).toBe('quiet');
  monitor.stop();
  expect(stops()).toBe(1);
});
