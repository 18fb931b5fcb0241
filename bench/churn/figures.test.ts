import { expect, test } from 'vitest';
import { byMinute, figuresOf, quantile, waitMs } from './figures.ts';
import type { PodLifecycle } from './pod-churn.ts';

/** One pod a second, each Ready after `ready` ms and gone 20 s later; undefined: never Ready. */
const lifecycles = (seconds: number, ready: (second: number) => number | undefined): PodLifecycle[] =>
  Array.from({ length: seconds }, (_, second) => {
    const madeAt = 1_000_000 + second * 1_000;
    const wait = ready(second);
    const deletedAt = madeAt + 20_000;
    return { madeAt, ...(wait !== undefined && { readyAt: madeAt + wait }), deletedAt, goneAt: deletedAt + 1_000 };
  });

test('a quantile is a value that occurred', () => {
  expect([quantile([3, 1, 2], 0.5), quantile([3, 1, 2], 0.99), quantile([7], 0.5)]).toEqual([2, 3, 7]);
});

test('minutes are those in which pods were made, and a short rest belongs to the last', () => {
  expect(
    byMinute(
      lifecycles(80, () => 100),
      80,
    ).map(({ length }) => length),
  ).toEqual([80]);
  expect(
    byMinute(
      lifecycles(150, () => 100),
      150,
    ).map(({ length }) => length),
  ).toEqual([60, 60, 30]);
});

test('a churn that keeps pace has an empty queue', () => {
  const figures = figuresOf(
    lifecycles(120, () => 400),
    120,
  );
  expect(figures).toMatchObject({
    's until Ready, minute 2, P99': 0.4,
    's from deletion to gone, minute 2, P50': 1,
    'pods that waited more than 5 s at the end of minute 2': 0,
    'pods that should have been gone for 5 s at the end of minute 2': 0,
    'pods never Ready': 0,
    'pods never gone': 0,
  });
});

test('a growing queue is seen, and a pod that never became Ready counts with its whole lifetime', () => {
  const growing = lifecycles(120, (second) => (second < 110 ? second * 100 : undefined));
  const figures = figuresOf(growing, 120);
  expect(figures['s until Ready, minute 1, P50']).toBe(3);
  expect(figures['s until Ready, minute 2, P50']).toBe(9);
  expect(figures['pods that waited more than 5 s at the end of minute 2']).toBe(5);
  expect(figures['pods never Ready']).toBe(10);
  const [last] = growing.slice(-1);
  expect(last && waitMs(last)).toBe(21_000);
});

test('stages are told of pods that were seen at both ends of them', () => {
  const [lifecycle] = lifecycles(1, () => 900);
  const traced: PodLifecycle = { ...(lifecycle as PodLifecycle), boundAt: 1_000_200, shadowAt: 1_000_500 };
  const figures = figuresOf([traced, ...lifecycles(3, () => 900)], 60);
  expect(figures['s from made to bound, P50']).toBe(0.2);
  expect(figures['s from bound to ShadowPod, P99']).toBe(0.3);
  expect(Object.keys(figures).some((name) => name.includes('remote pod to bound'))).toBe(false);
});
