import { expect, test } from 'vitest';
import { unmapped } from './socket-address.ts';

test.each([
  ['::ffff:10.0.0.7', '10.0.0.7'],
  ['::FFFF:127.0.0.1', '127.0.0.1'],
  ['10.0.0.7', '10.0.0.7'],
  ['fd00::7', 'fd00::7'],
  ['::ffff:0:1', '::ffff:0:1'],
  ['', ''],
])('the socket address %j is written %j', (shown, written) => {
  expect(unmapped(shown)).toBe(written);
});
