import { expect, test } from 'vitest';
import { latencyMs } from './latency.ts';

test.each([
  ['12ms', 12],
  ['1.5s', 1_500],
  // The agent writes the Greek letter, Liqo the sign for micro.
  ['800\u03bcs', 0.8],
  ['800\u00b5s', 0.8],
  ['N/A', undefined],
  ['1.2.3ms', undefined],
  [undefined, undefined],
])('the round trip %s is %s ms', (text, ms) => {
  expect(latencyMs(text)).toBe(ms);
});
