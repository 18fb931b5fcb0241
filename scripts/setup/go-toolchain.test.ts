import { expect, test } from 'vitest';
import { goIsAtLeast } from './go-toolchain.ts';

test.each([
  { version: 'go1.26.8', minimum: '1.26.0', enough: true },
  { version: 'go1.26.0', minimum: '1.26.0', enough: true },
  { version: 'go1.26', minimum: '1.26.0', enough: true },
  { version: 'go1.30rc1', minimum: '1.26.0', enough: true },
  { version: 'go2.0.1', minimum: '1.26.0', enough: true },
  { version: 'go1.19.8', minimum: '1.26.0', enough: false },
  { version: 'go1.9', minimum: '1.24', enough: false },
  { version: 'nonsense', minimum: '1.24', enough: false },
])('$version is enough for $minimum: $enough', ({ version, minimum, enough }) => {
  expect(goIsAtLeast(version, minimum)).toBe(enough);
});
